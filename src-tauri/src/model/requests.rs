//! What chat asks for reaches the engine, field by field, and what the engine reports comes back. No value is its
//! default, so that a field that is left out is seen.

use super::*;
use crate::tests::requests::figures;

const DAY: jiff::civil::Date = jiff::civil::date(2021, 7, 4);

fn request() -> chat::Turn {
    let message = |role, text: &str, thinking: Option<&str>, ids| chat::HistoryMessage {
        role,
        text: text.to_owned(),
        thinking: thinking.map(str::to_owned),
        ids,
    };
    chat::Turn {
        history: vec![
            message(chat::Role::User, "What is green?", None, None),
            message(
                chat::Role::Assistant,
                "Grass.",
                Some("Hm."),
                Some(vec![4, 5]),
            ),
            message(chat::Role::User, "And blue?", None, None),
            message(chat::Role::Assistant, "The", Some("Sky"), Some(vec![6])),
        ],
        instructions: Some("Be brief.".to_owned()),
        thinking: true,
        today: DAY,
        sampling: chat::Sampling {
            temperature: 1.25,
            top_p: 0.75,
            top_k: 17,
            min_p: 0.125,
            repeat_penalty: 1.5,
            seed: Some(77),
        },
        max_tokens: Some(33),
        lookup: true,
        resume: true,
    }
}

#[test]
fn every_field_of_a_request_reaches_the_engine() {
    // Taken apart, so that a field to come is a field to compare.
    let engine::Conversation {
        messages,
        instructions,
        thinking,
        today,
        tools,
        keep_thinking,
    } = conversation(&request());
    assert_eq!(instructions.as_deref(), Some("Be brief."));
    assert_eq!((thinking, today, tools), (true, DAY, vec![]));
    assert_eq!(keep_thinking, KeepThinking::All);
    let messages: Vec<_> = messages
        .into_iter()
        .map(|message| {
            let engine::Turn {
                role,
                text,
                thinking,
                ids,
                open,
            } = message;
            (role, text, thinking, ids, open)
        })
        .collect();
    let (user, assistant) = (engine::Role::User, engine::Role::Assistant);
    let text = str::to_owned;
    assert_eq!(
        messages,
        [
            (user, text("What is green?"), None, None, false),
            (
                assistant,
                text("Grass."),
                Some(text("Hm.")),
                Some(vec![4, 5]),
                false
            ),
            (user, text("And blue?"), None, None, false),
            (
                assistant,
                text("The"),
                Some(text("Sky")),
                Some(vec![6]),
                true
            ),
        ]
    );

    let defaults = engine::Sampling {
        repeat_last_n: 19,
        ..engine::Sampling::default()
    };
    for starts_in in [Part::Thinking, Part::Answer] {
        let GenerateParams {
            sampling,
            max_tokens,
            starts_in: begins,
            lookup,
        } = params(&request(), &defaults, starts_in);
        assert_eq!((max_tokens, begins, lookup), (Some(33), starts_in, true));
        let expected = engine::Sampling {
            temperature: 1.25,
            top_k: 17,
            top_p: 0.75,
            min_p: 0.125,
            repeat_penalty: 1.5,
            repeat_last_n: 19,
            seed: Some(77),
        };
        assert_eq!(sampling, expected);
    }

    let plain = chat::Turn {
        thinking: false,
        lookup: false,
        resume: false,
        instructions: None,
        max_tokens: None,
        ..request()
    };
    let plain_conversation = conversation(&plain);
    assert!(!plain_conversation.thinking && plain_conversation.instructions.is_none());
    assert!(
        plain_conversation
            .messages
            .iter()
            .all(|message| !message.open)
    );
    let plain = params(&plain, &defaults, Part::Answer);
    assert_eq!((plain.lookup, plain.max_tokens), (false, None));
}

#[test]
fn every_option_of_loading_reaches_the_engine() {
    let asked = chat::LoadOptions {
        device: "gpu:3".into(),
        threads: Some(5),
        context_length: Some(1234),
        kv_type: chat::KvType::Q8_0,
        own_templates: Vec::new(),
    };
    let engine::LoadOptions {
        placement,
        threads,
        context,
        kv,
        exact,
        cpu_level,
        sandbox,
        stretch,
    } = load_options(&asked);
    // The variable goes before the setting; a run of the tests may have it set.
    if std::env::var_os(devices::VARIABLE).is_none() {
        let request = requested(&asked).expect("a device");
        assert_eq!(request.to_string(), "gpu:3");
    }
    assert_eq!(placement, engine::Placement::Cpu, "devices decides");
    assert_eq!((threads, context, kv), (Some(5), Some(1234), KvType::Q8_0));
    assert!(cpu_level.is_none() && !exact && sandbox.is_none());
    assert_eq!(stretch, engine::LoadOptions::default().stretch);

    let usual = chat::LoadOptions {
        threads: None,
        context_length: None,
        kv_type: chat::KvType::F16,
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
        let options = chat::LoadOptions {
            device: "cpu".into(),
            threads: Some(1),
            context_length,
            kv_type,
            own_templates: Vec::new(),
        };
        let mut model = EngineModel::default();
        model
            .open(&ModelChoice::DemoModel, &options, &mut |_| {})
            .expect("it opens")
    };
    let full = open(None, chat::KvType::F16);
    let short = open(Some(512), chat::KvType::F16);
    assert_eq!(short.context_length, 512);
    assert!(full.context_length > 512 && short.kv_bytes < full.kv_bytes);
    let small = open(Some(512), chat::KvType::Q8_0);
    assert!(small.kv_bytes < short.kv_bytes * 3 / 4, "{small:?}");
}

#[test]
fn figures_keep_their_meaning_and_their_units() {
    let info = ModelInfo {
        name: "Mine".into(),
        file: None,
        demo_model: false,
        quantisation: "Q4_K_M".into(),
        file_bytes: 1,
        context_length: 2,
        context_note: None,
        context_can_grow: false,
        kv_bytes: 3,
        longest_token: 4,
        fingerprint: "f".into(),
        template: chat::Template {
            used: chat::TemplateUse::Known,
            fault: None,
        },
        can_think: true,
        sampling: chat::Sampling::default(),
        device: chat::Device {
            kind: chat::DeviceKind::Cpu,
            name: "CPU, AVX2".into(),
            reason: String::new(),
            report: None,
        },
    };
    let stats = engine::Stats {
        prompt: 101,
        cached: 40,
        generated: 4,
        thinking: 1,
        prefill_s: 9.0,
        prefill_rate: 84.5,
        first_token_s: 1.2346,
        decode_rate: 16.25,
        drafted: 6,
        accepted: 5,
        seed: 77,
    };
    for (reason, expected) in [
        (engine::StopReason::EndOfTurn, chat::StopReason::EndOfTurn),
        (engine::StopReason::MaxTokens, chat::StopReason::MaxTokens),
        (
            engine::StopReason::ContextFull,
            chat::StopReason::ContextFull,
        ),
        (engine::StopReason::Cancelled, chat::StopReason::Cancelled),
    ] {
        let stats = stats.clone();
        let finish = finish(engine::Finished { reason, stats }, &info);
        let figures = figures();
        let expected = chat::Finish {
            reason: expected,
            stats: figures,
        };
        assert_eq!(finish, expected);
    }
}

#[test]
fn pieces_and_failures_keep_their_kind() {
    let reading = Event::Prefill {
        done: 1,
        total: 2,
        cached: 3,
    };
    let read = chat::Piece::Reading {
        done: 1,
        total: 2,
        cached: 3,
    };
    assert_eq!(piece(reading), read);
    for (part, expected) in [
        (Part::Thinking, chat::Part::Thinking),
        (Part::Answer, chat::Part::Answer),
        (Part::Control, chat::Part::Control),
    ] {
        let token = Event::Token {
            id: 7,
            piece: "a",
            part,
        };
        let expected = chat::Piece::Token {
            id: 7,
            text: "a",
            part: expected,
        };
        assert_eq!(piece(token), expected);
    }
    let too_long = GenerateError::TooLong {
        prompt: 9,
        context: 8,
    };
    assert_eq!(generation(&too_long).code, FailureCode::TooLong);
    let failure = generation(&GenerateError::Empty);
    assert_eq!(failure.code, FailureCode::Generation);
    assert_eq!(failure.message, "the prompt is empty");
}

#[test]
fn what_the_engine_says_of_a_device_and_a_model_is_said_of_it() {
    let file = demo_model::file().expect("the demo model");
    let options = engine::LoadOptions {
        threads: Some(1),
        ..engine::LoadOptions::default()
    };
    let opened = ModelFile::open(&file).expect("a model");
    let model = devices::open(None, &opened, &DeviceRequest::Cpu, &options, &mut |_| {});
    let model = model.expect("it opens");
    let engine = &model.engine;
    let summary = engine.summary();
    for choice in [ModelChoice::DemoModel, ModelChoice::File(file.clone())] {
        let is_demo_model = choice == ModelChoice::DemoModel;
        let expected = ModelInfo {
            name: "Demo model".into(),
            file: Some(file.clone()).filter(|_| !is_demo_model),
            demo_model: is_demo_model,
            quantisation: "Q4_K_M".into(),
            file_bytes: file.metadata().expect("there").len(),
            context_length: 2048,
            context_note: None,
            context_can_grow: true,
            longest_token: engine.tokenizer().longest_token(),
            kv_bytes: engine.full_kv_bytes(),
            fingerprint: summary.fingerprint.clone(),
            template: chat::Template {
                used: chat::TemplateUse::Known,
                fault: None,
            },
            can_think: true,
            sampling: chat::Sampling {
                temperature: 0.0,
                top_p: summary.sampling.top_p,
                top_k: u32::try_from(summary.sampling.top_k).expect("few"),
                min_p: summary.sampling.min_p,
                repeat_penalty: 1.0,
                seed: None,
            },
            device: chat::Device {
                kind: chat::DeviceKind::Cpu,
                name: engine.device().name.clone(),
                reason: "The CPU was chosen".into(),
                report: None,
            },
        };
        assert_eq!(info(&model, &choice), expected);
    }
}
