//! Imports: all or nothing, beside the work of others, and undone as one; and a copy that takes the store's place.

use std::time::{Duration, Instant};

use chat::{ChatEvent, Failure, FolderRecord, PresetRecord, RunningImport, Store, WholeChat};
use serde_json::value::RawValue;
use store::{ChosenPreset, faults};

use crate::beside::Beside;
use crate::scripted::{Bench, Script, Step, TIMING, TODAY};

const DAY: &str = "2026-03-05";

/// Chats as another store has them.
fn chats(count: usize, text: &str) -> Vec<WholeChat> {
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

fn add(store: &Store, chat: chat::ChatId, text: &str) {
    let parent = store.chats().get(chat).unwrap().leaf;
    let message = store::NewMessage {
        chat,
        parent,
        role: chat::Role::User,
        state: chat::MessageState::Done,
        text,
        thinks: false,
        created_at: 100,
    };
    store.messages().add(&message).unwrap();
}

fn import(bench: &Bench, chats: Vec<WholeChat>) -> Result<chat::ImportCounts, Failure> {
    let mut import = RunningImport::begin(&bench.chat)?;
    for whole in chats {
        import.add(whole)?;
    }
    import.finish()
}

fn titles(bench: &Bench) -> Vec<String> {
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

#[test]
fn what_is_here_already_is_left_out_and_what_went_on_is_added() {
    let bench = Bench::new();
    let chats = chats(3, "x");
    import(&bench, chats.clone()).unwrap();
    let again = import(&bench, chats.clone()).unwrap();
    assert_eq!((again.added, again.known, again.changed), (0, 3, 0));
    // Whoever goes on here has all that the file has.
    let first = bench.chat.snapshot().unwrap().chats[0].id;
    let mut bench = bench;
    bench.ask(Some(first), "And how long?");
    assert_eq!(import(&bench, chats.clone()).unwrap().known, 3);
    // Whoever went on there has more.
    let mut more = chats;
    let mut message = more[0].messages[0].clone();
    message.id = 2;
    message.parent = Some(1);
    message.text = "Later".into();
    more[0].messages.push(message);
    more[0].chat.leaf = Some(2);
    for known in [2, 3] {
        let counts = import(&bench, more.clone()).unwrap();
        assert_eq!((counts.added, counts.known), (3 - known, known));
    }
    assert_eq!(titles(&bench).len(), 4);
    // One that was deleted comes again.
    let all: Vec<_> = bench
        .chat
        .snapshot()
        .unwrap()
        .chats
        .iter()
        .map(|chat| chat.id)
        .collect();
    bench.chat.delete(all).unwrap();
    assert_eq!(import(&bench, more).unwrap().added, 3);
}

/// The chats with one more message behind the first of them.
fn gone_on(mut chats: Vec<WholeChat>, text: &str) -> Vec<WholeChat> {
    let chat = &mut chats[0];
    let last = chat.messages.last().unwrap().clone();
    chat.messages.push(store::MessageRecord {
        id: last.id + 1,
        parent: Some(last.id),
        text: text.into(),
        ..last
    });
    chat.chat.leaf = Some(last.id + 1);
    chats
}

#[test]
fn a_chat_that_comes_twice_in_one_import_is_added_once() {
    let bench = Bench::new();
    let [a] = &chats(1, "x")[..] else { panic!() };
    import(&bench, vec![a.clone()]).unwrap();
    let b = gone_on(vec![a.clone()], "Later").remove(0);
    let counts = import(&bench, vec![b.clone(), b.clone()]).unwrap();
    assert_eq!((counts.added, counts.changed, counts.known), (1, 1, 1));
    // The same where none of them is here.
    let bench = Bench::new();
    let counts = import(&bench, vec![a.clone(), b.clone(), b.clone(), a.clone()]).unwrap();
    assert_eq!((counts.added, counts.changed, counts.known), (2, 1, 2));
    assert_eq!(import(&bench, vec![b, a.clone()]).unwrap().known, 2);
}

#[test]
fn states_of_one_chat_in_one_import_have_uids_of_their_own() {
    let bench = Bench::new();
    let a = chats(1, "x").remove(0);
    let mut all: Vec<_> = ["B", "C", "D"]
        .map(|text| gone_on(vec![a.clone()], text).remove(0))
        .into();
    // One that has the uid which a later state would get.
    let mut taken = chats(1, "y").remove(0);
    taken.chat.uid = store::later_uid(&a.chat.uid, 2);
    all.insert(1, taken);
    all.insert(0, a);
    assert_eq!(import(&bench, all.clone()).unwrap().added, 5);
    let uids: std::collections::BTreeSet<String> = bench
        .chat
        .snapshot()
        .unwrap()
        .chats
        .iter()
        .map(|chat| bench.chat.record(chat.id).unwrap().chat.uid)
        .collect();
    assert_eq!(uids.len(), 5, "{uids:?}");
    assert_eq!(import(&bench, all).unwrap().known, 5);
}

#[test]
fn many_states_of_one_chat_take_as_long_as_many_chats() {
    let took = |chats: Vec<WholeChat>| {
        let (bench, count) = (Bench::new(), chats.len());
        let begun = Instant::now();
        assert_eq!(import(&bench, chats).unwrap().added, count);
        begun.elapsed()
    };
    let first = chats(1, "x").remove(0);
    let states = (0..3000).map(|at| gone_on(vec![first.clone()], &at.to_string()).remove(0));
    let states: Vec<_> = states.collect();
    let mut apart = states.clone();
    for (at, whole) in apart.iter_mut().enumerate() {
        whole.chat.uid = at.to_string();
    }
    let (apart, states) = (took(apart), took(states));
    assert!(
        states < 3 * apart,
        "{states:?}, and {apart:?} of as many chats"
    );
}

/// Two chats of one store: "first", "second", "third", and a summary of it up to "second".
fn summed_up() -> Vec<WholeChat> {
    let mut both = chats(2, "x");
    let [of, summary] = &mut both[..] else {
        panic!()
    };
    for (id, text) in [(2, "second"), (3, "third")] {
        let message = store::MessageRecord {
            id,
            parent: Some(1),
            text: text.into(),
            ..of.messages[0].clone()
        };
        of.messages.push(message);
    }
    of.chat.leaf = Some(2);
    summary.messages[0].prompt_leaf = Some(store::MessagePlace {
        chat: of.chat.uid.clone(),
        message: 2,
    });
    summary.chat.continues = Some(of.chat.uid.clone());
    both
}

/// What the summary is of, by the text of its message; `None`: nothing.
fn summed_up_message(bench: &Bench, title: &str) -> Option<String> {
    let chats = bench.chat.snapshot().unwrap().chats;
    let records: Vec<_> = chats
        .iter()
        .map(|chat| bench.chat.record(chat.id).unwrap())
        .collect();
    let summary = records.iter().find(|it| it.chat.title == title).unwrap();
    let place = summary.messages[0].prompt_leaf.clone()?;
    let of = records.iter().find(|it| it.chat.uid == place.chat).unwrap();
    assert_eq!(summary.chat.continues.as_ref(), Some(&of.chat.uid));
    Some(of.messages[place.message as usize - 1].text.clone())
}

fn chat_titled(bench: &Bench, title: &str) -> chat::ChatId {
    let chats = bench.chat.snapshot().unwrap().chats;
    chats.iter().find(|it| it.title == title).unwrap().id
}

#[test]
fn a_summary_that_is_imported_again_is_of_the_chat_that_came_with_it() {
    let both = summed_up();
    let [of, summary] = [0, 1].map(|at| both[at].chat.title.clone());
    let second = Some("second".to_owned());

    let bench = Bench::new();
    import(&bench, both.clone()).unwrap();
    assert_eq!(summed_up_message(&bench, &summary), second);
    // The chat is here in another state: it is added beside that one.
    let view = bench.chat.open_chat(chat_titled(&bench, &of)).unwrap();
    let message = view.messages.iter().find(|it| it.text == "second").unwrap();
    bench.chat.delete_message(message.id).unwrap();
    bench.chat.delete([chat_titled(&bench, &summary)]).unwrap();
    let counts = import(&bench, both.clone()).unwrap();
    assert_eq!((counts.added, counts.changed), (2, 1));
    assert_eq!(summed_up_message(&bench, &summary), second);

    // All that it says is here, at other places: before the summary, and after it.
    for at_end in [false, true] {
        let bench = Bench::new();
        import(&bench, vec![both[0].clone()]).unwrap();
        let mut shorter = both.clone();
        shorter[0].messages.remove(0);
        for (place, message) in (1..).zip(&mut shorter[0].messages) {
            (message.id, message.parent) = (place, None);
        }
        shorter[0].chat.leaf = Some(1);
        shorter[1].messages[0].prompt_leaf.as_mut().unwrap().message = 1;
        if at_end {
            shorter.reverse();
        }
        let counts = import(&bench, shorter).unwrap();
        assert_eq!((counts.added, counts.known), (1, 1));
        assert_eq!(summed_up_message(&bench, &summary), second);
    }

    // Of two exports in one import, each summary is of the state that came with it.
    let bench = Bench::new();
    let mut later = both.clone();
    later[0].messages.remove(0);
    for (place, message) in (1..).zip(&mut later[0].messages) {
        (message.id, message.parent) = (place, None);
        message.text += " edited";
    }
    later[0].chat.leaf = Some(1);
    later[1].chat.uid = "another".into();
    later[1].chat.title = "Another".into();
    later[1].messages[0].prompt_leaf.as_mut().unwrap().message = 1;
    import(&bench, [both, later].concat()).unwrap();
    assert_eq!(summed_up_message(&bench, &summary), second);
    let edited = Some("second edited".to_owned());
    assert_eq!(summed_up_message(&bench, "Another"), edited);
}

#[test]
fn the_model_reads_the_text_of_an_imported_answer() {
    let mut bench = Bench::new();
    let mut whole = chats(1, "x").remove(0);
    let answer = r#"{"id":2,"parent":1,"role":"assistant","state":"done","text":"Hi.","tokens":[4294967295,7],
        "model":"Demo model","createdAt":100}"#;
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
        // What another import left, of which nothing was purged yet.
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
        });
        import.add(whole).unwrap();
    }
    let counts = import.finish().unwrap();
    assert_eq!((counts.folders, counts.presets), (1, 5));
    // A folder and a preset without a name, and one with a temperature that no model takes.
    assert_eq!((counts.cut, counts.left_out), (5, 3));
    let (folders, presets) = names(&bench);
    let cut = |most: usize| "ä".repeat(most - 1) + "…";
    assert_eq!(folders, ["work".to_owned(), cut(100)]);
    let mut expected = [
        "Coder".to_owned(),
        "CODER 2".to_owned(),
        cut(60),
        sixty.clone(),
        "ö".repeat(58) + " 2",
    ];
    expected.sort();
    let mut found = presets;
    found.sort();
    assert_eq!(found, expected);
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
    assert_eq!((counts.presets, counts.left_out), (495, 105));
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
fn a_message_that_was_deleted_here_comes_back_with_an_earlier_export() {
    let bench = Bench::new();
    let all = chats(1, "x");
    import(&bench, all.clone()).unwrap();
    let chat = bench.chat.snapshot().unwrap().chats[0].id;
    let message = bench.chat.open_chat(chat).unwrap().messages[0].id;
    bench.chat.delete_message(message).unwrap();
    assert!(bench.chat.record(chat).unwrap().messages.is_empty());
    let counts = import(&bench, all.clone()).unwrap();
    assert_eq!((counts.added, counts.changed), (1, 1));
    assert_eq!(import(&bench, all).unwrap().known, 1);
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

/// A store on a file with one chat, and a copy of it as it was before it had one.
fn restorable() -> (tempfile::TempDir, std::path::PathBuf, Bench) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let store = Store::open(&path).unwrap();
    let before = store.chats().create("Before", DAY, 100).unwrap();
    add(&store, before, "x");
    chat::back_up(&path, DAY, "14:05").unwrap();
    let mut bench = Bench::start(store, &Script::default(), TODAY);
    bench.until_ready();
    bench.ask(None, "After");
    (folder, path, bench)
}

#[test]
fn a_copy_takes_the_stores_place_without_a_restart() {
    let (_folder, path, mut bench) = restorable();
    let copies = chat::good_copies(&path);
    assert_eq!(copies[0].name, "manual-2026-03-05-14.05.db");
    assert_eq!(
        (copies[0].day.as_deref(), copies[0].time.as_deref()),
        (Some(DAY), Some("14:05"))
    );
    bench
        .chat
        .rename(bench.chat.snapshot().unwrap().chats[0].id, "Renamed")
        .unwrap();
    let kept = bench.chat.restore_copy(&path, &copies[0].name).unwrap();
    assert_eq!(titles(&bench), ["Before"]);
    assert_eq!(
        bench.chat.undo().unwrap(),
        None,
        "what was changed before is not there"
    );
    // What was there is kept, and what is written now is in the file.
    bench.ask(None, "Later");
    bench.chat.shutdown();
    let titles = |path: &std::path::Path| {
        let mut titles: Vec<_> = Store::open(path)
            .unwrap()
            .chats()
            .list()
            .unwrap()
            .into_iter()
            .map(|chat| chat.title)
            .collect();
        titles.sort();
        titles
    };
    assert_eq!(titles(&path), ["Before", "Later"]);
    assert_eq!(titles(&kept), ["Before", "Renamed"]);
}

#[test]
fn what_was_there_is_listed_even_if_it_was_read_meanwhile() {
    let (_folder, path, mut bench) = restorable();
    let reads = store::StoreSnapshot::take(&path).unwrap();
    bench.ask(None, "In the journal");
    bench
        .chat
        .restore_copy(&path, "manual-2026-03-05-14.05.db")
        .unwrap();
    drop(reads);
    let listed = chat::listed_copies(&path);
    let aside = listed
        .iter()
        .find(|copy| copy.reason == chat::CopyReason::SetAside);
    assert_eq!(aside.map(|copy| copy.chats), Some(3));
}

#[test]
fn a_copy_that_is_not_there_changes_nothing_and_neither_does_one_while_an_answer_is_written() {
    let (_folder, path, mut bench) = restorable();
    let before = titles(&bench);
    let missing = bench.chat.restore_copy(&path, "day-2000-01-01.db");
    assert!(missing.unwrap_err().message.contains("was not restored"));
    assert_eq!(titles(&bench), before);
    bench.script.answer([Step::Say("Well"), Step::Wait]);
    let chat = bench.chat.snapshot().unwrap().chats[0].id;
    bench.chat.send(Some(chat), "Go on", false).unwrap();
    let failure = bench
        .chat
        .restore_copy(&path, "manual-2026-03-05-14.05.db")
        .unwrap_err();
    assert!(
        failure.message.contains("answer is still being written"),
        "{failure}"
    );
    assert!(!path.with_extension("unfinished").exists());
    bench.chat.stop(chat).unwrap();
    bench.until(|event| matches!(event, ChatEvent::Ended { .. }));
    assert_eq!(titles(&bench), before);
}

#[test]
fn the_store_is_left_for_its_copy_or_goes_on_where_that_fails() {
    let (_folder, path, bench) = restorable();
    let failed = bench.chat.leave_store(|_| Err(Failure::other("no room")));
    assert_eq!(failed.unwrap_err().message, "no room");
    assert_eq!(titles(&bench).len(), 2);
    let copied = bench.chat.leave_store(|file| {
        // Nothing is in a journal beside it.
        assert!(!file.with_extension("db-wal").exists());
        Ok(())
    });
    copied.unwrap();
    let closed = bench.chat.snapshot().unwrap_err();
    assert!(closed.message.contains("closing"), "{closed}");
    assert_eq!(Store::open(&path).unwrap().chats().list().unwrap().len(), 2);
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
    // Each verb is followed by what is due.
    bench.chat.snapshot().unwrap();
    assert_eq!(import.finish().unwrap().added, 2);
    assert_eq!(titles(&bench), ["Chat 0", "Chat 1"]);
    for chat in bench.chat.snapshot().unwrap().chats {
        assert_eq!(bench.chat.open_chat(chat.id).unwrap().messages.len(), 1);
    }
}

#[test]
fn what_comes_while_the_store_is_left_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let mut bench = Bench::on_file(&path, &Script::default());
    bench.until_ready();
    let (begun, wait) = std::sync::mpsc::channel();
    let leaving = bench.chat.clone();
    let left = std::thread::spawn(move || {
        leaving.leave_store(move |_| {
            begun.send(()).unwrap();
            std::thread::sleep(Duration::from_millis(100));
            Ok(())
        })
    });
    wait.recv().unwrap();
    let refused = bench.chat.send(None, "How heavy?", true).unwrap_err();
    assert!(refused.message.contains("is closing"), "{refused}");
    left.join().unwrap().unwrap();
}

#[test]
fn a_copy_does_not_take_the_stores_place_while_a_branch_is_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    let store = Store::open(&path).unwrap();
    let long = store.chats().create("Long", DAY, 100).unwrap();
    let fill = |store: &Store| {
        (0..3000).for_each(|at| add(store, long, &at.to_string()));
        Ok::<_, store::StoreError>(())
    };
    store.transaction(fill).unwrap();
    let leaf = store.chats().get(long).unwrap().leaf.unwrap();
    chat::back_up(&path, DAY, "14:05").unwrap();
    let mut bench = Bench::start(store, &Script::default(), TODAY);
    bench.until_ready();
    let handle = bench.chat.clone();
    let fork = std::thread::spawn(move || handle.fork(leaf).unwrap());
    let refused = loop {
        // It is asked between two parts of the copy.
        match bench.chat.may_leave_store() {
            Err(failure) => break failure.message,
            Ok(()) => assert!(!fork.is_finished(), "never refused"),
        }
    };
    assert!(
        refused.contains("a new chat is still being made"),
        "{refused}"
    );
    assert_eq!(fork.join().unwrap().messages.len(), 3000);
    let name = "manual-2026-03-05-14.05.db";
    bench.chat.restore_copy(&path, name).unwrap();
    assert_eq!(titles(&bench), ["Long"]);
}

#[test]
fn what_waits_to_be_read_ahead_of_the_file_that_was_there_is_not_read() {
    let (_folder, path, mut bench) = restorable();
    let chat = chat_titled(&bench, "After");
    let loaded = bench.script.slow_open();
    bench.chat.open_model(chat::ModelChoice::DemoModel).unwrap();
    bench.chat.read_ahead(Some(chat), "Where ", true).unwrap();
    let name = chat::good_copies(&path).remove(0).name;
    bench.chat.restore_copy(&path, &name).unwrap();
    // The id is that of another chat now.
    import(&bench, chats(1, "another")).unwrap();
    assert_eq!(chat_titled(&bench, "Chat 0"), chat);
    drop(loaded);
    bench.until_ready();
    bench.chat.read_ahead(None, "Here ", true).unwrap();
    let new = Beside::ReadAhead(chat::ChatId(0), "Here".into());
    let done = bench.script.beside().until(&new);
    assert!(
        !done.contains(&Beside::ReadAhead(chat, "Where".into())),
        "{done:?}"
    );
}
