//! Folders.

use chat::{ChatEvent, FolderId};

use crate::bench::Bench;

fn names(bench: &Bench) -> Vec<String> {
    let folders = bench.chat.snapshot().unwrap().folders;
    folders.into_iter().map(|folder| folder.name).collect()
}

#[test]
fn folders_are_made_renamed_and_moved_and_each_is_taken_back() {
    let mut bench = Bench::new();
    let chat = bench.ask(None, "Work").chat.id;
    let work = bench.chat.create_folder("  Work ", []).unwrap();
    bench.until(
        |event| matches!(event, ChatEvent::FoldersChanged { folders } if folders[0].name == "Work"),
    );
    let home = bench.chat.create_folder("Home", []).unwrap();
    bench.chat.create_folder("Garden", []).unwrap();
    assert_eq!(names(&bench), ["Work", "Home", "Garden"]);

    bench.chat.move_folder(home, 0).unwrap();
    assert_eq!(names(&bench), ["Home", "Work", "Garden"]);
    bench.chat.move_folder(home, 99).unwrap();
    assert_eq!(names(&bench), ["Work", "Garden", "Home"]);
    bench.chat.rename_folder(home, "House").unwrap();
    assert_eq!(names(&bench), ["Work", "Garden", "House"]);
    bench.chat.collapse_folder(work, true).unwrap();

    let labels: Vec<_> = std::iter::from_fn(|| bench.chat.undo().unwrap())
        .map(|undone| undone.label)
        .collect();
    assert_eq!(
        labels,
        [
            "renamed the folder “Home”",
            "moved the folder “Home”",
            "moved the folder “Home”",
            "created the folder “Garden”",
            "created the folder “Home”",
            "created the folder “Work”",
        ]
    );
    assert!(names(&bench).is_empty());
    while bench.chat.redo().unwrap().is_some() {}
    assert_eq!(names(&bench), ["Work", "Garden", "House"]);
    let folders = bench.chat.snapshot().unwrap().folders;
    assert_eq!((folders[0].id, folders[0].collapsed), (work, true));
    // A chat and a folder may have the same name.
    bench.chat.move_chats([chat], Some(work)).unwrap();
    assert_eq!(bench.chat.open_chat(chat).unwrap().chat.folder, Some(work));
}

#[test]
fn a_deleted_folder_leaves_its_chats_and_comes_back_with_them() {
    let mut bench = Bench::new();
    let chat = bench.ask(None, "One").chat.id;
    let binned = bench.ask(None, "Two").chat.id;
    bench.chat.create_folder("First", []).unwrap();
    let folder = bench.chat.create_folder("Work", [chat, binned]).unwrap();
    bench.chat.create_folder("Last", []).unwrap();
    bench.chat.delete([binned]).unwrap();

    assert_eq!(
        bench.chat.delete_folder(folder).unwrap(),
        "deleted the folder “Work”"
    );
    assert_eq!(bench.chat.open_chat(chat).unwrap().chat.folder, None);
    assert_eq!(names(&bench), ["First", "Last"]);
    bench.chat.undo().unwrap();
    assert_eq!(names(&bench), ["First", "Work", "Last"]);
    bench.chat.undo().unwrap();
    for chat in [chat, binned] {
        assert_eq!(
            bench.chat.open_chat(chat).unwrap().chat.folder,
            Some(folder)
        );
    }
    bench.chat.redo().unwrap();
    bench.chat.redo().unwrap();
    bench.chat.restore([binned]).unwrap();
    assert_eq!(bench.chat.open_chat(binned).unwrap().chat.folder, None);
}

#[test]
fn a_folder_made_for_chats_is_one_change_and_they_go_back_where_they_were() {
    let mut bench = Bench::new();
    let chat = bench.ask(None, "One").chat.id;
    let home = bench.chat.create_folder("Home", [chat]).unwrap();
    let work = bench.chat.create_folder("Work", [chat]).unwrap();
    bench.chat.undo().unwrap();
    assert_eq!(names(&bench), ["Home"]);
    assert_eq!(bench.chat.open_chat(chat).unwrap().chat.folder, Some(home));
    bench.chat.redo().unwrap();
    assert_eq!(bench.chat.open_chat(chat).unwrap().chat.folder, Some(work));
    bench.chat.undo().unwrap();
    assert_eq!(bench.chat.open_chat(chat).unwrap().chat.folder, Some(home));
}

#[test]
fn a_name_is_one_line_and_no_other_folder_has_it() {
    let bench = Bench::new();
    let work = bench.chat.create_folder("Work", []).unwrap();
    let home = bench.chat.create_folder("Home", []).unwrap();
    let refused = |name: &str| bench.chat.create_folder(name, []).unwrap_err().message;
    assert_eq!(refused(" \n"), "The name of a folder cannot be empty.");
    assert_eq!(refused("wORK"), "There is already a folder “Work”.");
    assert_eq!(
        refused(&"x".repeat(1_000_000)),
        "The name of a folder has at most 100 characters; this one has 1,000,000."
    );
    assert!(bench.chat.rename_folder(home, "work").is_err());
    bench.chat.rename_folder(work, "WORK").unwrap();
    assert!(bench.chat.rename_folder(FolderId(9), "X").is_err());
    assert_eq!(names(&bench), ["WORK", "Home"]);
}
