//! Imports: all or nothing, beside the work of others, and undone as one.

use std::time::{Duration, Instant};

use chat::{ChatEvent, Failure, RunningImport};
use serde_json::value::RawValue;
use store::{ChosenPreset, FolderRecord, Parts, PresetRecord, Store, WholeChat, faults};

use crate::scripted::{Bench, Script, TIMING, TODAY};

pub const DAY: &str = "2026-03-05";

/// Makes chats in the form in which another store exports them.
pub fn chats(count: usize, text: &str) -> Vec<WholeChat> {
    let other = Store::in_memory().unwrap();
    for at in 0..count {
        let chat = other
            .chats()
            .create(&format!("Chat {at}"), DAY, 100)
            .unwrap();
        add(&other, chat, &format!("{text} {at}"));
    }
    let records = other.records();
    let all = records.all().unwrap().into_iter();
    all.map(|chat| records.read(chat).unwrap()).collect()
}

pub fn add(store: &Store, chat: chat::ChatId, text: &str) {
    let parent = store.chats().get(chat).unwrap().leaf;
    let message = store::NewMessage {
        chat,
        parent,
        role: chat::Role::User,
        state: chat::MessageState::Done,
        parts: Parts::of_text(text),
        thinks: false,
        created_at: 100,
    };
    store.messages().add(&message).unwrap();
}

pub fn import(bench: &Bench, chats: Vec<WholeChat>) -> Result<chat::ImportCounts, Failure> {
    let mut import = RunningImport::begin(&bench.chat)?;
    for whole in chats {
        import.add(whole)?;
    }
    import.finish()
}

pub fn titles(bench: &Bench) -> Vec<String> {
    let chats = bench.chat.snapshot().unwrap().chats;
    let mut titles: Vec<_> = chats.into_iter().map(|chat| chat.title).collect();
    titles.sort();
    titles
}

#[test]
fn an_import_is_there_at_once_and_undone_as_one() {
    let mut bench = Bench::new();
    let mut import = RunningImport::begin(&bench.chat).unwrap();
    import.add_folder(folder("Work")).unwrap();
    for mut whole in chats(3, "How heavy?") {
        whole.chat.folder = Some("Work".into());
        import.add(whole).unwrap();
    }
    assert_eq!(titles(&bench), [] as [&str; 0]);
    assert!(RunningImport::begin(&bench.chat).is_err(), "one at a time");
    let counts = import.finish().unwrap();
    assert_eq!((counts.added, counts.known), (3, 0));
    bench.until(|event| matches!(event, ChatEvent::ChatsChanged { chats } if chats.len() == 3));
    assert_eq!(titles(&bench), ["Chat 0", "Chat 1", "Chat 2"]);
    assert_eq!(bench.chat.snapshot().unwrap().folders.len(), 1);
    assert!(!bench.chat.search("heavy").unwrap().chats.is_empty());

    let undone = bench.chat.undo().unwrap().unwrap();
    assert_eq!(undone.label, "imported 3 chats and 1 folder");
    assert_eq!(titles(&bench), [] as [&str; 0]);
    assert_eq!(bench.chat.bin().unwrap().len(), 3);
    assert!(bench.chat.snapshot().unwrap().folders.is_empty());
    bench.chat.redo().unwrap();
    assert_eq!(titles(&bench).len(), 3);
    let snapshot = bench.chat.snapshot().unwrap();
    assert!(
        snapshot
            .chats
            .iter()
            .all(|chat| chat.folder == Some(snapshot.folders[0].id))
    );
    bench.chat.undo().unwrap();
    assert_eq!(
        bench.chat.undo().unwrap(),
        None,
        "an undo of an undo is no other change"
    );
}

pub fn chat_titled(bench: &Bench, title: &str) -> chat::ChatId {
    let chats = bench.chat.snapshot().unwrap().chats;
    chats.iter().find(|it| it.title == title).unwrap().id
}

#[test]
fn the_model_reads_the_text_of_an_imported_answer() {
    let mut bench = Bench::new();
    let mut whole = chats(1, "x").remove(0);
    let answer = r#"{"id":2,"parent":1,"role":"assistant","state":"done","text":"Hi.","tokens":[4294967295,7],
        "model":"SmolLM2-135M-Instruct","createdAt":100}"#;
    whole.messages.push(serde_json::from_str(answer).unwrap());
    whole.chat.leaf = Some(2);
    import(&bench, vec![whole]).unwrap();
    let chat = chat_titled(&bench, "Chat 0");
    bench.ask(Some(chat), "Go on");
    let asked = bench.script.last_turn().history;
    assert_eq!((asked[1].text.as_str(), &asked[1].ids), ("Hi.", &None));
}

#[test]
fn a_chat_from_the_future_is_imported_as_of_today() {
    let mut bench = Bench::new();
    let mut whole = chats(1, "x").remove(0);
    whole.chat.updated_at = i64::MAX;
    import(&bench, vec![whole]).unwrap();
    let chat = bench.ask(None, "Now").chat;
    let chats = bench.chat.snapshot().unwrap().chats;
    assert_eq!(chats[0].id, chat.id, "{chats:?}");
}

#[test]
fn two_imports_at_one_moment_of_any_clock_are_apart() {
    for now in [
        "1970-01-01T00:00:00+00:00[UTC]",
        "1960-01-01T00:00:00+00:00[UTC]",
        TODAY,
    ] {
        let timing = chat::Timing {
            purge_after: Duration::from_secs(3600),
            ..TIMING
        };
        let store = Store::in_memory().unwrap();
        // The rest of another import, none of which was purged yet.
        let mut left = chat::Importing::begin(&store, 0).unwrap();
        left.add(&store, chats(1, "left").remove(0)).unwrap();
        left.write(&store, Duration::MAX).unwrap();
        let bench = Bench::timed(store, &Script::default(), now, timing);
        import(&bench, chats(2, "x")).unwrap();
        assert_eq!(titles(&bench).len(), 2, "{now}");
        assert_eq!(bench.chat.bin().unwrap(), [], "{now}");
    }
}

fn preset(name: &str, instructions: &str) -> PresetRecord {
    let sampling = r#"{"temperature":0.3}"#.to_owned();
    PresetRecord {
        name: name.into(),
        instructions: instructions.into(),
        thinking: None,
        sampling: RawValue::from_string(sampling).unwrap(),
        tools: None,
    }
}

fn folder(name: &str) -> FolderRecord {
    FolderRecord {
        name: name.into(),
        collapsed: false,
        created_at: 5,
    }
}

fn names(bench: &Bench) -> (Vec<String>, Vec<String>) {
    let snapshot = bench.chat.snapshot().unwrap();
    let presets = bench.chat.presets().unwrap().into_iter();
    (
        snapshot.folders.into_iter().map(|it| it.name).collect(),
        presets.map(|preset| preset.content.name).collect(),
    )
}

#[test]
fn a_preset_that_was_changed_here_is_imported_once() {
    let bench = Bench::new();
    let import = || {
        let mut import = RunningImport::begin(&bench.chat).unwrap();
        import.add_preset(preset("Coder", "Code first.")).unwrap();
        import.finish().unwrap()
    };
    assert_eq!(import().presets, 1);
    let mut changed = bench.chat.presets().unwrap().remove(0);
    changed.content.instructions = "Another.".into();
    bench
        .chat
        .save_preset(Some(changed.id), changed.content)
        .unwrap();
    assert_eq!(import().presets, 1);
    assert_eq!(import().presets, 0);
    assert_eq!(names(&bench).1, ["Coder", "Coder 2"]);
}

#[test]
fn names_and_texts_of_an_import_are_those_that_can_be_given_here() {
    let bench = Bench::new();
    bench.chat.create_folder("work", Vec::new()).unwrap();
    let long = "ä".repeat(1 << 20);
    let mut import = RunningImport::begin(&bench.chat).unwrap();
    for name in ["Work", " \n", &long] {
        import.add_folder(folder(name)).unwrap();
    }
    let sixty = "ö".repeat(60);
    for name in ["Coder", "CODER", "", &long, &sixty] {
        import.add_preset(preset(name, name)).unwrap();
    }
    import.add_preset(preset(&sixty, &long)).unwrap();
    let mut hot = preset("Hot", "");
    hot.sampling = RawValue::from_string(r#"{"temperature":99}"#.into()).unwrap();
    import.add_preset(hot).unwrap();
    for mut whole in chats(1, "x") {
        whole.chat.folder = Some(long.clone());
        whole.chat.chosen_preset = Some(ChosenPreset {
            preset: Some(long.clone()),
            instructions: long.clone(),
            tools: None,
        });
        import.add(whole).unwrap();
    }
    let counts = import.finish().unwrap();
    assert_eq!((counts.folders, counts.presets), (1, 6));
    // A folder and a preset without a name.
    assert_eq!((counts.cut, counts.left_out), (5, 2));
    let (folders, presets) = names(&bench);
    let cut = |most: usize| "ä".repeat(most - 1) + "…";
    assert_eq!(folders, ["work".to_owned(), cut(100)]);
    let mut expected = [
        "Coder".to_owned(),
        "CODER 2".to_owned(),
        cut(60),
        sixty.clone(),
        "ö".repeat(58) + " 2",
        "Hot".to_owned(),
    ];
    expected.sort();
    let mut found = presets;
    found.sort();
    assert_eq!(found, expected);
    let hot = bench.chat.presets().unwrap().into_iter();
    let hot = hot.map(|it| it.content).find(|it| it.name == "Hot");
    assert_eq!(hot.unwrap().sampling.temperature, Some(5.0), "the nearest");
    // All of them can be changed here.
    for preset in bench.chat.presets().unwrap() {
        let thinking = Some(true);
        let content = chat::PresetContent {
            thinking,
            ..preset.content
        };
        bench.chat.save_preset(Some(preset.id), content).unwrap();
    }
    let snapshot = bench.chat.snapshot().unwrap();
    assert_eq!(snapshot.chats[0].folder, Some(snapshot.folders[1].id));
    let view = bench.chat.open_chat(snapshot.chats[0].id).unwrap();
    let chosen = view.preset.unwrap();
    assert!(chosen.preset.is_some());
    assert_eq!(chosen.instructions.chars().count(), 20_000);

    let mut import = RunningImport::begin(&bench.chat).unwrap();
    for at in 0..600 {
        import.add_preset(preset(&format!("P{at}"), "")).unwrap();
    }
    let counts = import.finish().unwrap();
    assert_eq!((counts.presets, counts.left_out), (494, 106));
}

#[test]
fn folders_and_presets_that_come_without_a_chat_are_said_and_undone() {
    let bench = Bench::new();
    let all = chats(1, "x");
    import(&bench, all.clone()).unwrap();
    let renamed = bench.chat.snapshot().unwrap().chats[0].id;
    bench.chat.rename(renamed, "Renamed").unwrap();
    let mut import = RunningImport::begin(&bench.chat).unwrap();
    import.add_folder(folder("Work")).unwrap();
    import.add_preset(preset("Coder", "")).unwrap();
    import.add(all[0].clone()).unwrap();
    let counts = import.finish().unwrap();
    assert_eq!((counts.added, counts.folders, counts.presets), (0, 1, 1));
    let undone = bench.chat.undo().unwrap().unwrap();
    assert_eq!(undone.label, "imported 1 folder and 1 preset");
    assert_eq!(names(&bench), (Vec::new(), Vec::new()));
    assert_eq!(titles(&bench), ["Renamed"]);
    bench.chat.redo().unwrap();
    let (folders, presets) = names(&bench);
    assert_eq!((folders.len(), presets.len()), (1, 1));
}

#[test]
fn a_chat_without_a_title_gets_one_of_its_first_words() {
    let bench = Bench::new();
    let mut all = chats(2, "  \n---\nHow heavy is it?");
    all[0].messages.clear();
    all[0].chat.leaf = None;
    for whole in &mut all {
        whole.chat.title.clear();
    }
    import(&bench, all).unwrap();
    let titles = titles(&bench);
    assert!(titles[0].starts_with("How heavy is it?"), "{titles:?}");
    assert_eq!(titles[1], "Imported chat");
}

#[test]
fn an_import_that_ends_before_it_is_whole_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let bench = Bench::on_file(&path, &Script::default());
    let mut dropped = RunningImport::begin(&bench.chat).unwrap();
    for whole in chats(20, &"long ".repeat(5000)) {
        dropped.add(whole).unwrap();
    }
    drop(dropped);
    assert_eq!(titles(&bench), [] as [&str; 0]);
    assert!(bench.chat.bin().unwrap().is_empty(), "nobody deleted them");

    faults::refuse_writes(&path, &["message"]).unwrap();
    let failure = import(&bench, chats(2, "x")).unwrap_err();
    assert!(
        failure.message.starts_with("Nothing was imported."),
        "{failure}"
    );
    faults::allow_writes(&path).unwrap();
    assert_eq!(import(&bench, chats(2, "x")).unwrap().added, 2);
    bench.chat.shutdown();
    let begun = Instant::now();
    let store = Store::open(&path).unwrap();
    while store.chats().purge(1, Duration::from_secs(5)).unwrap() {}
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert_eq!(store.chats().ids_of_all().unwrap().len(), 2);
}

#[test]
fn others_are_served_while_chats_are_imported() {
    let bench = Bench::new();
    let mut import = RunningImport::begin(&bench.chat).unwrap();
    let handle = bench.chat.clone();
    let (done, is_done) = std::sync::mpsc::channel();
    let worker = std::thread::spawn(move || {
        for whole in chats(300, &"How heavy is a goldcrest? ".repeat(200)) {
            import.add(whole).unwrap();
        }
        import.finish().unwrap();
        done.send(()).unwrap();
    });
    let mut longest = Duration::ZERO;
    while is_done.try_recv().is_err() {
        let begun = Instant::now();
        handle.save_draft(None, "typing").unwrap();
        longest = longest.max(begun.elapsed());
        std::thread::sleep(Duration::from_millis(5));
    }
    worker.join().unwrap();
    assert!(longest < Duration::from_secs(2), "{longest:?}");
}

#[test]
fn nothing_is_purged_while_an_import_is_written() {
    let mut bench = Bench::new();
    let old = bench.ask(None, "Old").chat.id;
    let mut import = RunningImport::begin(&bench.chat).unwrap();
    let text = "words ".repeat(1 << 16);
    for whole in chats(2, &text) {
        import.add(whole).unwrap();
    }
    bench.chat.delete([old]).unwrap();
    bench.chat.delete_for_good([old]).unwrap();
    // Each verb is followed by the work that is due.
    bench.chat.snapshot().unwrap();
    assert_eq!(import.finish().unwrap().added, 2);
    assert_eq!(titles(&bench), ["Chat 0", "Chat 1"]);
    for chat in bench.chat.snapshot().unwrap().chats {
        assert_eq!(bench.chat.open_chat(chat.id).unwrap().messages.len(), 1);
    }
}
