//! Requests from chat to the engine, field by field, and reports back. No value is its default, so that a missing field
//! is detected.

use engine::KvType;

use super::opened::{info, load_options, requested};
use super::*;

#[test]
fn every_option_of_loading_reaches_the_engine() {
    let asked = chat::ModelOptions {
        device: "gpu:3".into(),
        threads: Some(5),
        context_length: Some(1234),
        kv_type: KvType::Q8_0,
    };
    let engine::LoadOptions {
        placement,
        threads,
        context,
        kv,
        exact,
        cpu_level,
        allow_yarn,
    } = load_options(&asked);
    // The variable has precedence over the setting; the tests may be run with it set.
    if std::env::var_os(devices::VARIABLE).is_none() {
        let request = requested(&asked).expect("a device");
        assert_eq!(request.to_string(), "gpu:3");
    }
    assert_eq!(placement, engine::Placement::Cpu, "devices decides");
    assert_eq!((threads, context, kv), (Some(5), Some(1234), KvType::Q8_0));
    assert!(cpu_level.is_none() && !exact);
    assert_eq!(allow_yarn, engine::LoadOptions::default().allow_yarn);

    let usual = chat::ModelOptions {
        threads: None,
        context_length: None,
        kv_type: KvType::F16,
        ..asked
    };
    let usual = load_options(&usual);
    assert_eq!(
        (usual.threads, usual.context, usual.kv),
        (None, None, KvType::F16)
    );
}

#[test]
fn an_open_model_has_the_context_and_the_cache_that_were_asked_for() {
    let open = |context_length, kv_type| {
        let options = chat::ModelOptions {
            device: "cpu".into(),
            threads: Some(1),
            context_length,
            kv_type,
        };
        let mut model = EngineModel::default();
        model
            .open(&ModelChoice::BundledModel, &options, &mut |_| {})
            .expect("it opens")
    };
    let full = open(None, KvType::F16);
    let short = open(Some(512), KvType::F16);
    assert_eq!(short.context_length, 512);
    assert!(full.context_length > 512 && short.kv_bytes < full.kv_bytes);
    let small = open(Some(512), KvType::Q8_0);
    assert!(small.kv_bytes < short.kv_bytes * 3 / 4, "{small:?}");
}

#[test]
fn failures_keep_their_kind() {
    let too_long = GenerateError::TooLong {
        prompt: 9,
        context: 8,
    };
    assert_eq!(generation(&too_long).code, FailureCode::TooLong);
    let failure = generation(&GenerateError::Empty);
    assert_eq!(failure.code, FailureCode::BadForm);
    assert_eq!(failure.message, "the prompt is empty");
}

#[test]
fn what_the_engine_says_of_a_device_and_a_model_is_said_of_it() {
    let file = bundled_model::file().expect("the bundled model");
    let options = engine::LoadOptions {
        threads: Some(1),
        ..engine::LoadOptions::default()
    };
    let opened = ModelFile::open(&file).expect("a model");
    let model = devices::open(
        None,
        &opened,
        &devices::DeviceRequest::Cpu,
        &options,
        &mut |_| {},
    );
    let model = model.expect("it opens");
    let engine = &model.engine;
    let summary = engine.summary();
    for choice in [ModelChoice::BundledModel, ModelChoice::File(file.clone())] {
        let is_bundled_model = choice == ModelChoice::BundledModel;
        let expected = ModelInfo {
            name: if is_bundled_model {
                chat::BUNDLED_MODEL.into()
            } else {
                "Tiny model".into()
            },
            file: Some(file.display().to_string()).filter(|_| !is_bundled_model),
            bundled_model: is_bundled_model,
            quantisation: "Q4_K_M".into(),
            file_bytes: file.metadata().expect("there").len(),
            context_length: 2048,
            context_note: None,
            context_can_grow: true,
            longest_token: engine.tokenizer().longest_token(),
            kv_bytes: engine.full_kv_bytes(),
            fingerprint: summary.fingerprint.clone(),
            chat_format: "SmolLM3".into(),
            can_think: true,
            sampling: summary.sampling.clone(),
            device: chat::Device {
                on_gpu: false,
                name: engine.device().name.clone(),
                reason: "The CPU was chosen".into(),
                report: None,
            },
            can_call_tools: true,
        };
        assert_eq!(info(&model, &choice), expected);
    }
}
