//! Presets and instructions of a chat, as the model gets them.

use chat::{
    ChatEvent, ChatId, ChatPreset, PresetContent, PresetId, SamplingSettings, Settings, Theme,
    Undone,
};

use crate::scripted::{Bench, Script};

fn preset(name: &str) -> PresetContent {
    PresetContent {
        name: name.into(),
        instructions: format!("Answer as a {name}."),
        thinking: Some(false),
        sampling: SamplingSettings {
            temperature: Some(1.5),
            ..SamplingSettings::default()
        },
        tools: None,
    }
}

fn names(bench: &Bench) -> Vec<String> {
    let presets = bench.chat.snapshot().unwrap().presets.into_iter();
    presets.map(|preset| preset.content.name).collect()
}

fn choose(bench: &Bench, chat: Option<ChatId>, preset: Option<PresetId>, instructions: &str) {
    let instructions = instructions.to_owned();
    let chosen = ChatPreset {
        preset,
        instructions,
        tools: None,
    };
    bench.chat.choose_preset(chat, chosen).unwrap();
}

/// Returns the instructions that the model gets.
fn instructed(bench: &mut Bench, chat: Option<ChatId>) -> Option<String> {
    bench.ask(chat, "Hello?");
    bench.script.last_turn().instructions
}

fn undo(bench: &Bench) -> Option<String> {
    bench.chat.undo().unwrap().map(|undone| undone.label)
}

#[test]
fn a_chats_instructions_go_before_its_presets_and_these_before_the_settings() {
    let mut bench = Bench::new();
    let settings = Settings {
        instructions: "Be brief.".into(),
        sampling_changes: SamplingSettings {
            temperature: Some(0.5),
            top_k: Some(7),
            ..SamplingSettings::default()
        },
        ..Settings::default()
    };
    bench.chat.save_settings(settings).unwrap();
    let poet = bench.chat.save_preset(None, preset("poet")).unwrap();
    let chat = bench.ask(None, "Hello?").chat.id;
    assert_eq!(
        instructed(&mut bench, Some(chat)).as_deref(),
        Some("Be brief.")
    );
    assert_eq!(bench.script.last_turn().sampling.temperature, 0.5);
    choose(&bench, Some(chat), Some(poet), "");
    assert_eq!(
        instructed(&mut bench, Some(chat)).as_deref(),
        Some("Answer as a poet.")
    );
    let sampling = bench.script.last_turn().sampling;
    assert_eq!(
        (sampling.temperature, sampling.top_k),
        (1.5, 7),
        "each value by itself"
    );
    choose(&bench, Some(chat), Some(poet), " Rhyme. \n");
    assert_eq!(
        instructed(&mut bench, Some(chat)).as_deref(),
        Some("Rhyme.")
    );
    assert_eq!(
        instructed(&mut bench, None).as_deref(),
        Some("Be brief."),
        "another chat"
    );
    let view = bench.chat.open_chat(chat).unwrap();
    assert_eq!(view.preset.unwrap().preset, Some(poet));
}

#[test]
fn a_change_of_a_preset_changes_its_chats_and_one_that_is_deleted_leaves_them_on_the_settings() {
    let mut bench = Bench::new();
    let poet = bench.chat.save_preset(None, preset("poet")).unwrap();
    let chat = bench.ask(None, "Hello?").chat.id;
    choose(&bench, Some(chat), Some(poet), "");
    let changed = PresetContent {
        instructions: "Answer in verse.".into(),
        ..preset("A poet")
    };
    bench.chat.save_preset(Some(poet), changed).unwrap();
    assert_eq!(
        instructed(&mut bench, Some(chat)).as_deref(),
        Some("Answer in verse.")
    );
    bench.chat.delete_preset(poet).unwrap();
    assert_eq!(instructed(&mut bench, Some(chat)), None);
    let refused = bench.chat.delete_preset(poet).unwrap_err().message;
    assert_eq!(refused, "This preset does not exist any more.");

    assert_eq!(undo(&bench).as_deref(), Some("deleted the preset “A poet”"));
    assert_eq!(
        instructed(&mut bench, Some(chat)).as_deref(),
        Some("Answer in verse."),
        "its chats have it again"
    );
    assert_eq!(undo(&bench).as_deref(), Some("changed the preset “poet”"));
    assert_eq!(names(&bench), ["poet"]);
    assert_eq!(
        undo(&bench).as_deref(),
        Some("chose the preset “poet” for “Hello?”")
    );
    assert_eq!(instructed(&mut bench, Some(chat)), None);
    assert_eq!(undo(&bench).as_deref(), Some("added the preset “poet”"));
    assert!(names(&bench).is_empty());
    for _ in 0..4 {
        assert!(bench.chat.redo().unwrap().is_some());
    }
    assert!(names(&bench).is_empty(), "it was deleted at the end");
}

#[test]
fn a_temporary_chat_begins_with_what_a_new_chat_would() {
    let bench = Bench::new();
    let [poet, coder] =
        ["poet", "coder"].map(|name| bench.chat.save_preset(None, preset(name)).unwrap());
    let settings = Settings {
        default_preset: Some(coder),
        ..Settings::default()
    };
    bench.chat.save_settings(settings).unwrap();
    let view = bench.chat.new_temporary_chat().unwrap();
    assert_eq!(view.preset.unwrap().preset, Some(coder));
    bench.chat.rename(view.chat.id, "Taken").unwrap();
    choose(&bench, None, Some(poet), "Rhyme.");
    let view = bench.chat.new_temporary_chat().unwrap();
    assert_eq!(view.preset.unwrap().instructions, "Rhyme.");
}

#[test]
fn a_new_chat_keeps_what_was_chosen_for_it_and_the_next_begins_with_the_default() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let bench = Bench::on_file(&path, &Script::default());
    let [poet, coder] =
        ["poet", "coder"].map(|name| bench.chat.save_preset(None, preset(name)).unwrap());
    let settings = Settings {
        default_preset: Some(coder),
        ..Settings::default()
    };
    bench.chat.save_settings(settings).unwrap();
    choose(&bench, None, Some(poet), "Rhyme.");
    bench.chat.shutdown();

    let mut bench = Bench::on_file(&path, &Script::default());
    bench.until_ready();
    let chosen = bench.chat.snapshot().unwrap().new_chat_preset.unwrap();
    assert_eq!(
        (chosen.preset, chosen.instructions.as_str()),
        (Some(poet), "Rhyme.")
    );
    let chat = bench.chat.send(None, "Hello?", true).unwrap().chat.id;
    let reset = |event: &ChatEvent| {
        matches!(
            event,
            ChatEvent::PresetChosen {
                chat: None,
                preset: None
            }
        )
    };
    bench.until(reset);
    bench.until_ended();
    assert_eq!(bench.chat.snapshot().unwrap().new_chat_preset, None);
    assert_eq!(bench.chat.open_chat(chat).unwrap().preset, Some(chosen));
    assert_eq!(
        instructed(&mut bench, None).as_deref(),
        Some("Answer as a coder.")
    );
    bench.chat.delete_preset(coder).unwrap();
    assert_eq!(
        instructed(&mut bench, None),
        None,
        "a default that is gone is none"
    );
}

#[test]
fn what_is_typed_at_a_stretch_is_undone_at_once() {
    let mut bench = Bench::new();
    let chat = bench.ask(None, "Hello?").chat.id;
    for text in ["R", "Rhy", "Rhyme."] {
        choose(&bench, Some(chat), None, text);
    }
    let poet = bench.chat.save_preset(None, preset("poet")).unwrap();
    choose(&bench, Some(chat), Some(poet), "");
    let of = |label: &str| Undone {
        label: label.to_owned(),
        restored: None,
        chat: Some(chat),
        settings: None,
    };
    let undone = bench.chat.undo().unwrap();
    assert_eq!(undone, Some(of("chose the preset “poet” for “Hello?”")));
    let view = bench.chat.open_chat(chat).unwrap();
    assert_eq!(view.preset.unwrap().instructions, "Rhyme.");
    undo(&bench);
    let undone = bench.chat.undo().unwrap();
    assert_eq!(undone, Some(of("changed the instructions of “Hello?”")));
    assert_eq!(bench.chat.open_chat(chat).unwrap().preset, None);
    assert_eq!(undo(&bench), None);
}

#[test]
fn what_was_chosen_for_a_chat_that_began_is_not_undone_in_the_next() {
    let mut bench = Bench::new();
    let [poet, coder] =
        ["poet", "coder"].map(|name| bench.chat.save_preset(None, preset(name)).unwrap());
    choose(&bench, None, Some(poet), "");
    choose(&bench, None, Some(coder), "");
    let chat = bench.ask(None, "Hello?").chat.id;
    assert_eq!(undo(&bench).as_deref(), Some("added the preset “coder”"));
    assert_eq!(bench.chat.snapshot().unwrap().new_chat_preset, None);
    let view = bench.chat.open_chat(chat).unwrap();
    assert_eq!(view.preset.unwrap().preset, Some(coder));
    // Nor is it redone there.
    choose(&bench, None, Some(poet), "");
    undo(&bench);
    bench.ask(None, "Hello?");
    bench.chat.redo().unwrap();
    assert_eq!(bench.chat.snapshot().unwrap().new_chat_preset, None);
}

#[test]
fn a_name_stands_for_one_preset() {
    let bench = Bench::new();
    let poet = bench.chat.save_preset(None, preset("Poet")).unwrap();
    bench.chat.save_preset(None, preset("poet")).unwrap();
    bench
        .chat
        .add_presets(vec![preset("POET"), preset("Coder")])
        .unwrap();
    assert_eq!(names(&bench), ["Coder", "Poet", "poet 2", "POET 3"]);
    let refused = bench
        .chat
        .save_preset(Some(poet), preset("coder"))
        .unwrap_err();
    assert_eq!(
        refused.message,
        "There is a preset “Coder” already. Choose another name."
    );
    bench.chat.save_preset(Some(poet), preset("POET")).unwrap();
    assert_eq!(
        undo(&bench).as_deref(),
        Some("changed the preset “Poet”"),
        "its own name"
    );
    assert_eq!(undo(&bench).as_deref(), Some("added 2 presets"));
    assert_eq!(names(&bench), ["Poet", "poet 2"]);
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let mut bench = Bench::new();
    let chat = bench.ask(None, "Hello?").chat.id;
    let wrong = |change: fn(&mut PresetContent)| {
        let mut content = preset("poet");
        change(&mut content);
        bench.chat.save_preset(None, content).unwrap_err().message
    };
    assert_eq!(
        wrong(|it| it.name = " \n".into()),
        "The name of a preset cannot be empty."
    );
    assert!(wrong(|it| it.name = "x".repeat(1 << 20)).contains("60 characters"));
    assert!(wrong(|it| it.instructions = "x".repeat(20_001)).starts_with("Instructions"));
    assert!(wrong(|it| it.sampling.top_p = Some(f32::NAN)).starts_with("Top-p"));
    let content = PresetContent {
        instructions: "x".repeat(20_001),
        ..preset("second")
    };
    assert!(
        bench
            .chat
            .add_presets(vec![preset("first"), content])
            .is_err()
    );
    let chosen = |preset, instructions: &str| ChatPreset {
        preset,
        instructions: instructions.to_owned(),
        tools: None,
    };
    let long = "x".repeat(20_001);
    assert!(
        bench
            .chat
            .choose_preset(Some(chat), chosen(None, &long))
            .is_err()
    );
    assert!(
        bench
            .chat
            .choose_preset(Some(chat), chosen(Some(PresetId(9)), ""))
            .is_err()
    );
    assert!(
        bench
            .chat
            .choose_preset(Some(ChatId(99)), chosen(None, "x"))
            .is_err()
    );
    let many: Vec<_> = (0..501).map(|at| preset(&at.to_string())).collect();
    assert!(
        bench
            .chat
            .add_presets(many)
            .unwrap_err()
            .message
            .contains("500")
    );
    assert!(names(&bench).is_empty());
    assert_eq!(bench.chat.open_chat(chat).unwrap().preset, None);
    assert_eq!(undo(&bench), None);
}

#[test]
fn settings_are_undone_and_the_page_gets_them() {
    let bench = Bench::new();
    let first = Settings::default();
    let larger = Settings {
        max_tokens: Some(150),
        ..first.clone()
    };
    let briefly = Settings {
        instructions: "Be brief.".into(),
        sampling_changes: SamplingSettings {
            seed: Some(7),
            ..SamplingSettings::default()
        },
        ..larger.clone()
    };
    for settings in [&larger, &larger, &briefly] {
        bench.chat.save_settings(settings.clone()).unwrap();
    }
    for (label, settings) in [
        ("changed 2 settings", &larger),
        ("changed “Maximum answer length”", &first),
    ] {
        let undone = bench.chat.undo().unwrap().unwrap();
        assert_eq!(undone.label, label);
        assert_eq!(undone.settings.as_deref(), Some(settings));
        assert_eq!(bench.chat.snapshot().unwrap().settings, *settings);
    }
    assert_eq!(undo(&bench), None, "saving what is saved is no change");
    assert_eq!(
        bench.chat.redo().unwrap().unwrap().settings.as_deref(),
        Some(&larger)
    );
}

#[test]
fn theme_and_zoom_stay_as_they_are_whatever_is_undone() {
    let bench = Bench::new();
    let dark = Settings {
        zoom: 150,
        theme: Theme::Dark,
        ..Settings::default()
    };
    bench.chat.save_settings(dark.clone()).unwrap();
    assert_eq!(undo(&bench), None);
    let brief = Settings {
        zoom: 80,
        instructions: "Be brief.".into(),
        ..dark
    };
    bench.chat.save_settings(brief.clone()).unwrap();
    let undone = bench.chat.undo().unwrap().unwrap();
    assert_eq!(undone.label, "changed “Instructions”");
    let plain = Settings {
        instructions: String::new(),
        ..brief
    };
    assert_eq!(undone.settings.as_deref(), Some(&plain));
}
