//! What chat asks for reaches the engine, field by field, and what the engine reports comes back. No value is its
//! default, so that a field that is left out is seen.

use super::*;

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
        device: "cuda:3".into(),
        threads: Some(5),
        context_length: Some(1234),
        kv_type: chat::KvType::Q8_0,
        own_templates: Vec::new(),
    };
    let engine::LoadOptions {
        device,
        because,
        rates,
        threads,
        context,
        kv,
        exact,
        cpu_level,
        software_gpu: _,
        gpu_matrices,
        sandbox,
        stretch,
    } = load_options(&asked).expect("a device");
    // The variable goes before the setting; a run of the tests may have it set.
    if std::env::var_os(device::VARIABLE).is_none() {
        assert_eq!(device.to_string(), "cuda:3");
    }
    assert_eq!((threads, context, kv), (Some(5), Some(1234), KvType::Q8_0));
    assert!(because.is_none() && rates.is_none() && cpu_level.is_none());
    assert!(!exact && !gpu_matrices && sandbox.is_none());
    assert_eq!(stretch, engine::LoadOptions::default().stretch);

    let usual = chat::LoadOptions {
        threads: None,
        context_length: None,
        kv_type: chat::KvType::F16,
        ..asked
    };
    let usual = load_options(&usual).expect("a device");
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
            .open(&ModelChoice::Starter, &options, &mut |_| {})
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
        starter: false,
        quantisation: "Q4_K_M".into(),
        file_bytes: 1,
        context_length: 2,
        context_note: None,
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
        generated: 23,
        thinking: 7,
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
        let figures = chat::Stats {
            prompt_tokens: 101,
            cached_tokens: 40,
            tokens: 23,
            thinking_tokens: 7,
            first_token_ms: 1235,
            tokens_per_second: 16.25,
            read_per_second: 84.5,
            drafted_tokens: 6,
            accepted_tokens: 5,
            seed: 77,
            model: "Mine".into(),
            device: "CPU, AVX2".into(),
        };
        let expected = chat::Finish {
            reason: expected,
            stats: figures,
        };
        assert_eq!(finish, expected);
    }
}
