//! Alternatives if the chosen data folder is gone: the next start uses another one. Nothing begins in an empty folder
//! unless the user chooses that: the chats are somewhere.

use std::fs;
use std::io;
use std::path::Path;

use chat::Failure;
use system::private;

use crate::data_pointer::DataPointer;
use crate::folders::Folders;

/// Makes the next start use a folder that has chats.
pub fn choose(pointer: &Path, folder: &Path) -> Result<(), Failure> {
    let chosen = Folders {
        data: folder.to_owned(),
    };
    if !chosen.has_chats() {
        return Err(Failure::other(format!(
            "There are no chats in {}. Choose the folder with goldcrest.db in it.",
            folder.display()
        )));
    }
    let written = keep_old(pointer).and_then(|()| {
        let pointer_file = DataPointer {
            folder: folder.to_owned(),
            empty: None,
        };
        pointer_file.write(pointer)
    });
    written.map_err(|error| not_kept(pointer, &error))
}

/// Makes the next start use the default folder.
pub fn begin_again(pointer: &Path) -> Result<(), Failure> {
    keep_old(pointer).map_err(|error| not_kept(pointer, &error))
}

/// Renames the pointer, which keeps the location of the chats.
fn keep_old(pointer: &Path) -> io::Result<()> {
    match fs::rename(pointer, pointer.with_extension("json.bak")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    private::sync_parent(pointer)
}

fn not_kept(pointer: &Path, error: &io::Error) -> Failure {
    Failure::other(format!(
        "{} could not be changed: {error}.",
        pointer.display()
    ))
}

#[cfg(test)]
mod tests {
    use store::Store;

    use super::*;

    #[test]
    fn another_folder_with_chats_is_chosen_or_the_first_one_is_begun_again() {
        let home = tempfile::tempdir().expect("made");
        let pointer = home.path().join("config/data-folder.json");
        let lost = DataPointer {
            folder: home.path().join("lost"),
            empty: Some(home.path().join("old")),
        };
        lost.write(&pointer).expect("written");
        let read = |file: &Path| DataPointer::read(file).expect("no error");

        let empty = home.path().join("empty");
        fs::create_dir(&empty).expect("made");
        let refused = choose(&pointer, &empty).expect_err("refused");
        assert!(refused.message.contains("no chats in"), "{refused}");
        assert_eq!(read(&pointer).as_ref(), Some(&lost), "as it was");

        let found = home.path().join("found");
        Store::open(&found.join("goldcrest.db")).expect("made");
        choose(&pointer, &found).expect("chosen");
        let chosen = read(&pointer).expect("there");
        assert_eq!((chosen.folder, chosen.empty), (found, None));
        let kept = pointer.with_extension("json.bak");
        assert_eq!(read(&kept), Some(lost));

        // A file that cannot be read is no obstacle.
        fs::write(&pointer, "half").expect("written");
        begin_again(&pointer).expect("done");
        assert_eq!(read(&pointer), None);
        assert_eq!(fs::read_to_string(&kept).expect("kept"), "half");
        begin_again(&pointer).expect("nothing is left to do");
    }
}
