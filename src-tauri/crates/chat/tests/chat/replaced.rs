//! Model files whose content has changed.

use chat::{ModelView, Settings};

use crate::opening::{file, settled, with_mine};
use crate::scripted::{Bench, Script, open};

const REPLACED: &str = "mine.gguf was replaced since it was last opened: it is another model now.";

fn words(status: &ModelView) -> Option<&str> {
    status.error.as_ref().map(|error| error.message.as_str())
}

#[test]
fn a_file_that_was_replaced_while_the_app_was_closed_is_opened_with_a_word_about_it() {
    let (_folder, path, bench) = with_mine();
    bench.chat.shutdown();
    let restarted = |fingerprint: &str| {
        let script = Script::default();
        script.fingerprint(fingerprint);
        let mut bench = Bench::on_file(&path, &script);
        let status = settled(&mut bench);
        assert_eq!(open(&status).name, "mine");
        bench.chat.shutdown();
        status
    };
    assert_eq!(words(&restarted("mine")), None);
    assert_eq!(words(&restarted("another")), Some(REPLACED));
    assert_eq!(words(&restarted("another")), None, "it is said once");
}

#[test]
fn a_file_that_is_replaced_while_it_is_open_is_said_when_it_is_read_again() {
    let (_folder, _path, mut bench) = with_mine();
    bench.script.fingerprint("another");
    let threads = |threads| Settings {
        threads: Some(threads),
        ..Settings::default()
    };
    bench.chat.save_settings(threads(1)).unwrap();
    assert_eq!(words(&settled(&mut bench)), Some(REPLACED));
    bench.chat.save_settings(threads(2)).unwrap();
    assert_eq!(words(&settled(&mut bench)), None);
    // Also if it is reopened because another one did not open.
    bench.script.fingerprint("a third");
    bench.script.refuse(file("bad.gguf"));
    bench.chat.open_model(file("bad.gguf")).unwrap();
    let status = settled(&mut bench);
    let said = words(&status).unwrap();
    assert!(
        said.contains("bad.gguf") && said.ends_with(REPLACED),
        "{said}"
    );
}

#[test]
fn an_update_of_the_bundled_model_is_no_replaced_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("goldcrest.db");
    for version in ["one", "two"] {
        let script = Script::default();
        script.fingerprint(version);
        let mut bench = Bench::on_file(&path, &script);
        assert_eq!(words(&settled(&mut bench)), None);
        bench.chat.shutdown();
    }
}
