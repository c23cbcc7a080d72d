//! Settings: defaults, limits, and their effect on the model.

use chat::{
    FailureCode, KvType, ModelOptions, PresetId, Sampling, SamplingSettings, SendWith, Settings,
    Theme,
};

use crate::scripted::{Bench, Script, open};

#[test]
fn settings_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let bench = Bench::on_file(&path, &Script::default());
    assert_eq!(bench.chat.snapshot().unwrap().settings, Settings::default());
    let settings = Settings {
        theme: Theme::Dark,
        device: "gpu:1".into(),
        threads: Some(2),
        context_length: Some(8192),
        kv_type: KvType::Q8_0,
        unload_minutes: None,
        download_folder: Some("/models".into()),
        sampling_changes: SamplingSettings {
            temperature: Some(0.7),
            seed: Some(42),
            ..SamplingSettings::default()
        },
        max_tokens: Some(100),
        thinking_budget: Some(50),
        lookup: !Settings::default().lookup,
        read_ahead: !Settings::default().read_ahead,
        instructions: "Be brief.".into(),
        thinking: false,
        default_preset: Some(PresetId(3)),
        send_with: SendWith::CtrlEnter,
        zoom: 150,
        show_stats: true,
        guide_answers: false,
        model_titles: true,
        tools: vec!["calculator".to_owned()],
        allowed_tools: Vec::new(),
        tool_rounds: 4,
        tool_seconds: 30,
        tool_result_characters: 2000,
        server_seconds: 30,
    };
    assert_eq!(
        bench.chat.save_settings(settings.clone()).unwrap(),
        settings
    );
    bench.chat.shutdown();
    let bench = Bench::on_file(&path, &Script::default());
    assert_eq!(bench.chat.snapshot().unwrap().settings, settings);
}

/// Name of a wrong value, and how to set it.
type Wrong = (&'static str, fn(&mut Settings));

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn values_out_of_range_are_refused_and_nothing_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let bench = Bench::on_file(&path, &Script::default());
    let good = Settings {
        instructions: "Be brief.".into(),
        ..Settings::default()
    };
    bench.chat.save_settings(good.clone()).unwrap();
    let wrong: [Wrong; 33] = [
        ("Thinking budget", |s| s.thinking_budget = Some(0)),
        ("Thinking budget", |s| s.thinking_budget = Some(u32::MAX)),
        ("Temperature", |s| {
            s.sampling_changes.temperature = Some(-0.1)
        }),
        ("Temperature", |s| {
            s.sampling_changes.temperature = Some(f32::NAN)
        }),
        ("Temperature", |s| {
            s.sampling_changes.temperature = Some(5.1)
        }),
        ("Top-p", |s| s.sampling_changes.top_p = Some(1.5)),
        ("Top-p", |s| s.sampling_changes.top_p = Some(0.0)),
        ("Top-k", |s| s.sampling_changes.top_k = Some(200_001)),
        ("Min-p", |s| s.sampling_changes.min_p = Some(-0.1)),
        ("Min-p", |s| s.sampling_changes.min_p = Some(1.1)),
        ("Repeat penalty", |s| {
            s.sampling_changes.repeat_penalty = Some(3.1)
        }),
        ("Temperature", |s| {
            s.sampling_changes.temperature = Some(1e-45)
        }),
        ("Threads", |s| s.threads = Some(513)),
        ("Context", |s| s.context_length = Some(255)),
        ("Context", |s| s.context_length = Some((1 << 20) + 1)),
        ("Maximum answer length", |s| {
            s.max_tokens = Some((1 << 20) + 1)
        }),
        ("Device", |s| s.device = format!("gpu:{}", "x".repeat(65))),
        ("Device", |s| s.device = "gpu:\u{1b}[2J".into()),
        ("Device", |s| s.device = "x".repeat(100_000)),
        ("Min-p", |s| s.sampling_changes.min_p = Some(f32::INFINITY)),
        ("Repeat penalty", |s| {
            s.sampling_changes.repeat_penalty = Some(0.0)
        }),
        ("Seed", |s| s.sampling_changes.seed = Some(1 << 53)),
        ("Threads", |s| s.threads = Some(0)),
        ("Threads", |s| s.threads = Some(chat::max_threads() + 1)),
        ("Context", |s| s.context_length = Some(8)),
        ("Maximum answer length", |s| s.max_tokens = Some(0)),
        ("Unload when idle", |s| s.unload_minutes = Some(0)),
        ("Unload when idle", |s| s.unload_minutes = Some(10_081)),
        ("Device", |s| s.device = "cuda".into()),
        ("Device", |s| s.device = "tpu".into()),
        ("Device", |s| s.device = "gpu:\u{1b}[0m".into()),
        ("Device", |s| {
            s.device = "gpu:".to_owned() + &"0".repeat(100_000)
        }),
        ("Instructions", |s| s.instructions = "x".repeat(20_001)),
    ];
    for (name, make_wrong) in wrong {
        let mut settings = good.clone();
        make_wrong(&mut settings);
        let refused = bench.chat.save_settings(settings).unwrap_err();
        assert_eq!(refused.code, FailureCode::Other);
        assert!(
            refused.message.contains(name) && refused.message.len() < 300,
            "{name}: {}",
            refused.message
        );
        assert!(refused.message.len() < 200, "{name}");
    }
    let uuid = "gpu:00010203-0405-0607-0809-0a0b0c0d0e0f";
    for (device, temperature, threads) in [
        (uuid, 0.001, chat::max_threads()),
        ("gpu:0000:01:00.0", 0.0, 1),
    ] {
        let settings = Settings {
            device: device.into(),
            threads: Some(threads),
            sampling_changes: SamplingSettings {
                temperature: Some(temperature),
                ..good.sampling_changes
            },
            ..good.clone()
        };
        bench.chat.save_settings(settings).unwrap();
    }
    bench.chat.save_settings(good.clone()).unwrap();
    assert_eq!(bench.chat.snapshot().unwrap().settings, good);
    bench.chat.shutdown();
    let bench = Bench::on_file(&path, &Script::default());
    assert_eq!(bench.chat.snapshot().unwrap().settings, good, "on disk too");
    for device in ["auto", "cpu", "gpu", "gpu:0000:01:00.0"] {
        bench
            .chat
            .save_settings(Settings {
                device: device.into(),
                ..good.clone()
            })
            .unwrap();
    }
}

#[test]
fn the_model_gets_them() {
    let mut bench = Bench::new();
    let sampling = SamplingSettings {
        temperature: Some(0.0),
        seed: Some(1),
        ..SamplingSettings::default()
    };
    let instructions = " Be brief. ".to_owned();
    let settings = Settings {
        sampling_changes: sampling,
        instructions,
        max_tokens: Some(5),
        lookup: false,
        ..Settings::default()
    };
    bench.chat.save_settings(settings).unwrap();
    bench.ask(None, "Hello?");
    let turn = bench.script.last_turn();
    let defaults = open(&bench.chat.snapshot().unwrap().model).sampling.clone();
    assert_eq!(
        turn.sampling,
        Sampling {
            temperature: 0.0,
            seed: Some(1),
            ..defaults.with_thinking
        }
    );
    assert_eq!(turn.instructions.as_deref(), Some("Be brief."));
    assert_eq!(turn.max_tokens, Some(5));
    assert!(!turn.lookup);
}

#[test]
fn the_models_own_sampling_is_that_of_answers_with_thinking_or_without() {
    let mut bench = Bench::new();
    let chat = bench.ask(None, "Hello?").chat.id;
    let defaults = open(&bench.chat.snapshot().unwrap().model).sampling.clone();
    assert_eq!(bench.script.last_turn().sampling, defaults.with_thinking);
    bench.chat.send(Some(chat), "And now?", false).unwrap();
    bench.until_ended();
    assert_eq!(bench.script.last_turn().sampling, defaults.without_thinking);
}

#[test]
fn a_model_without_thinking_gets_no_budget_of_it() {
    let mut bench = Bench::new();
    bench.script.cannot_think();
    let settings = Settings {
        thinking_budget: Some(256),
        kv_type: KvType::Q8_0,
        ..Settings::default()
    };
    bench.chat.save_settings(settings).unwrap();
    bench.until_ready();
    bench.ask(None, "Hello?");
    let turn = bench.script.last_turn();
    assert_eq!((turn.thinking, turn.thinking_budget), (false, None));
    let defaults = open(&bench.chat.snapshot().unwrap().model).sampling.clone();
    assert_eq!(turn.sampling, defaults.without_thinking);
}

#[test]
fn a_change_of_how_the_model_is_loaded_loads_it_again_and_no_other_does() {
    let mut bench = Bench::new();
    let loaded = |bench: &Bench| bench.script.opens().len();
    let mut settings = Settings {
        lookup: !Settings::default().lookup,
        ..Settings::default()
    };
    bench.chat.save_settings(settings.clone()).unwrap();
    bench.ask(None, "Hello?");
    assert_eq!(loaded(&bench), 1);
    settings.kv_type = KvType::Q8_0;
    bench.chat.save_settings(settings).unwrap();
    bench.until_ready();
    assert_eq!(loaded(&bench), 2);
    assert_eq!(bench.script.opens()[1].1.kv_type, KvType::Q8_0);
}

#[test]
fn the_model_is_loaded_with_all_that_is_set() {
    let mut bench = Bench::new();
    let settings = Settings {
        device: "gpu:1".into(),
        threads: Some(1),
        context_length: Some(8192),
        kv_type: KvType::Q8_0,
        ..Settings::default()
    };
    bench.chat.save_settings(settings.clone()).unwrap();
    bench.until_ready();
    let expected = ModelOptions {
        device: settings.device,
        threads: settings.threads,
        context_length: settings.context_length,
        kv_type: settings.kv_type,
    };
    assert_eq!(bench.script.opens()[1].1, expected);
}

#[test]
fn the_most_threads_are_twice_the_cores() {
    let cores = std::thread::available_parallelism().unwrap().get();
    assert_eq!(usize::try_from(chat::max_threads()), Ok(2 * cores));
}

#[test]
fn settings_are_stored_under_the_names_that_the_page_uses() {
    let rows = serde_json::to_value(Settings::default()).unwrap();
    assert_eq!(rows["kvType"], "f16");
    let eight: KvType = serde_json::from_value(serde_json::json!("q8_0")).unwrap();
    assert_eq!(eight, KvType::Q8_0);
}

#[test]
fn a_stored_value_that_makes_no_sense_gives_way_to_its_default() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let store = store::Store::open(&path).unwrap();
    let set = |key: &str, value| store.settings().set(key, &value).unwrap();
    set("user.theme", serde_json::json!("plaid"));
    set("user.threads", serde_json::json!(0));
    set("user.instructions", serde_json::json!("Be brief."));
    set("user.ofALaterVersion", serde_json::json!([1, 2]));
    set("user.sampling", serde_json::json!({ "temperature": 1.0 }));
    drop(store);
    let bench = Bench::on_file(&path, &Script::default());
    let expected = Settings {
        instructions: "Be brief.".into(),
        sampling_changes: SamplingSettings {
            temperature: Some(1.0),
            ..SamplingSettings::default()
        },
        ..Settings::default()
    };
    assert_eq!(bench.chat.snapshot().unwrap().settings, expected);
}

#[test]
fn what_the_user_has_not_changed_is_as_the_model_asks_for_it() {
    let mut bench = Bench::new();
    bench.ask(None, "Hello?");
    let defaults = open(&bench.chat.snapshot().unwrap().model).sampling.clone();
    let defaults = defaults.with_thinking;
    assert_ne!(defaults, Sampling::default(), "the script asks for its own");
    assert_eq!(bench.script.last_turn().sampling, defaults);
    let whole = Sampling {
        temperature: 0.75,
        top_p: 0.875,
        top_k: 5,
        min_p: 0.0625,
        repeat_penalty: 1.25,
        seed: Some(9),
        ..defaults
    };
    let sampling = SamplingSettings {
        temperature: Some(0.75),
        top_p: Some(0.875),
        top_k: Some(5),
        min_p: Some(0.0625),
        repeat_penalty: Some(1.25),
        seed: Some(9),
    };
    let settings = Settings {
        sampling_changes: sampling,
        ..Settings::default()
    };
    bench.chat.save_settings(settings).unwrap();
    bench.ask(None, "Hello?");
    assert_eq!(bench.script.last_turn().sampling, whole);
}

/// Checks values that were stored by earlier versions, which stored every value, changed or not.
#[test]
fn what_an_earlier_version_stored_counts_where_it_was_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let store = store::Store::open(&path).unwrap();
    let stored = serde_json::json!({
        "temperature": 0.6, "topP": 0.8, "topK": 0, "minP": 0.0, "repeatPenalty": 1.0, "seed": null
    });
    store.settings().set("user.sampling", &stored).unwrap();
    drop(store);
    let expected = SamplingSettings {
        top_p: Some(0.8),
        ..SamplingSettings::default()
    };
    let bench = Bench::on_file(&path, &Script::default());
    let mut settings = bench.chat.snapshot().unwrap().settings;
    assert_eq!(settings.sampling_changes, expected);
    // A value that is set to an earlier default from now on stays set.
    settings.sampling_changes.temperature = Some(0.6);
    bench.chat.save_settings(settings.clone()).unwrap();
    bench.chat.shutdown();
    let bench = Bench::on_file(&path, &Script::default());
    assert_eq!(bench.chat.snapshot().unwrap().settings, settings);
}
