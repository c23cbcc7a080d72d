//! Settings: defaults, limits, and what the model gets of them.

use chat::{FailureCode, KvType, Sampling, SendWith, Settings, Theme};

use crate::scripted::{Bench, Script};

#[test]
fn settings_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let bench = Bench::on_file(&path, &Script::default());
    assert_eq!(bench.chat.snapshot().unwrap().settings, Settings::default());
    let settings = Settings {
        theme: Theme::Dark,
        device: "cuda:1".into(),
        threads: Some(4),
        context_length: Some(8192),
        kv_type: KvType::Q8_0,
        own_templates: vec!["0123456789abcdef".into()],
        sampling: Sampling {
            temperature: 0.7,
            seed: Some(42),
            ..Sampling::default()
        },
        max_tokens: Some(100),
        lookup: !Settings::default().lookup,
        instructions: "Be brief.".into(),
        thinking: false,
        send_with: SendWith::CtrlEnter,
        show_stats: false,
    };
    assert_eq!(
        bench.chat.save_settings(settings.clone()).unwrap(),
        settings
    );
    bench.chat.shutdown();
    let bench = Bench::on_file(&path, &Script::default());
    assert_eq!(bench.chat.snapshot().unwrap().settings, settings);
}

/// What is wrong, and how to make it so.
type Wrong = (&'static str, fn(&mut Settings));

#[test]
fn values_out_of_range_are_refused_and_nothing_changes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let bench = Bench::on_file(&path, &Script::default());
    let good = Settings {
        instructions: "Be brief.".into(),
        ..Settings::default()
    };
    bench.chat.save_settings(good.clone()).unwrap();
    let wrong: [Wrong; 28] = [
        ("Temperature", |s| s.sampling.temperature = -0.1),
        ("Temperature", |s| s.sampling.temperature = f32::NAN),
        ("Temperature", |s| s.sampling.temperature = 5.1),
        ("Top p", |s| s.sampling.top_p = 1.5),
        ("Top p", |s| s.sampling.top_p = 0.0),
        ("Top k", |s| s.sampling.top_k = 200_001),
        ("Min p", |s| s.sampling.min_p = -0.1),
        ("Min p", |s| s.sampling.min_p = 1.1),
        ("Repeat penalty", |s| s.sampling.repeat_penalty = 3.1),
        ("Threads", |s| s.threads = Some(513)),
        ("Context length", |s| s.context_length = Some(255)),
        ("Context length", |s| s.context_length = Some((1 << 20) + 1)),
        ("Longest answer", |s| s.max_tokens = Some((1 << 20) + 1)),
        ("Device", |s| s.device = format!("gpu:{}", "x".repeat(65))),
        ("Device", |s| s.device = "gpu:\u{1b}[2J".into()),
        ("Device", |s| s.device = "x".repeat(100_000)),
        ("Min p", |s| s.sampling.min_p = f32::INFINITY),
        ("Repeat penalty", |s| s.sampling.repeat_penalty = 0.0),
        ("Seed", |s| s.sampling.seed = Some(1 << 53)),
        ("Threads", |s| s.threads = Some(0)),
        ("Context length", |s| s.context_length = Some(8)),
        ("Longest answer", |s| s.max_tokens = Some(0)),
        ("Device", |s| s.device = "cuda:".into()),
        ("Device", |s| s.device = "tpu".into()),
        ("fingerprint", |s| s.own_templates = vec!["model".into()]),
        ("fingerprint", |s| s.own_templates = vec![String::new()]),
        ("chat template", |s| {
            s.own_templates = vec!["0".into(); 1001];
        }),
        ("instructions", |s| s.instructions = "x".repeat(20_001)),
    ];
    for (name, make_wrong) in wrong {
        let mut settings = good.clone();
        make_wrong(&mut settings);
        let refused = bench.chat.save_settings(settings).unwrap_err();
        assert_eq!(refused.code, FailureCode::Invalid);
        assert!(
            refused.message.contains(name) && refused.message.len() < 300,
            "{name}: {}",
            refused.message
        );
    }
    assert_eq!(bench.chat.snapshot().unwrap().settings, good);
    bench.chat.shutdown();
    let bench = Bench::on_file(&path, &Script::default());
    assert_eq!(bench.chat.snapshot().unwrap().settings, good, "on disk too");
    for device in [
        "auto",
        "cpu",
        "gpu",
        "gpu:0000:01:00.0",
        "cuda",
        "cuda:0",
        "metal",
    ] {
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
    let sampling = Sampling {
        temperature: 0.0,
        seed: Some(1),
        ..Sampling::default()
    };
    let instructions = " Be brief. ".to_owned();
    let settings = Settings {
        sampling,
        instructions,
        max_tokens: Some(5),
        lookup: false,
        ..Settings::default()
    };
    bench.chat.save_settings(settings).unwrap();
    bench.ask(None, "Hello?");
    let turn = bench.script.last_turn();
    assert_eq!(turn.sampling, sampling);
    assert_eq!(turn.instructions.as_deref(), Some("Be brief."));
    assert_eq!(turn.max_tokens, Some(5));
    assert!(!turn.lookup);
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
    let store = chat::Store::open(&path).unwrap();
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
        sampling: Sampling {
            temperature: 1.0,
            ..Sampling::default()
        },
        ..Settings::default()
    };
    assert_eq!(bench.chat.snapshot().unwrap().settings, expected);
}
