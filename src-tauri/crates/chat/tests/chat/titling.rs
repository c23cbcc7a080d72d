//! Titles that the model makes.

use std::time::Duration;

use chat::{ChatEvent, ChatId, ModelChoice, Settings};

use crate::beside::Beside;
use crate::scripted::{Bench, TIMING};

fn bench(title: &'static str) -> Bench {
    let mut bench = Bench::new();
    bench.script.title(title);
    let file = ModelChoice::File("mine.gguf".into());
    bench.chat.open_model(file).unwrap();
    bench.until_ready();
    let settings = Settings {
        model_titles: true,
        ..Settings::default()
    };
    bench.chat.save_settings(settings).unwrap();
    bench
}

fn title(bench: &Bench, chat: ChatId) -> String {
    bench.chat.open_chat(chat).unwrap().chat.title
}

fn until_titled(bench: &mut Bench, title: &str) {
    bench.until(|event| matches!(event, ChatEvent::ChatChanged { chat } if chat.title == title));
}

fn asides(bench: &Bench) -> usize {
    let done = bench.script.beside().at_least(1);
    done.iter()
        .filter(|step| matches!(step, Beside::Aside(_)))
        .count()
}

#[test]
fn a_new_chat_gets_a_title_behind_its_first_answer_and_it_is_no_part_of_the_chat() {
    let mut bench = bench("**Weight of Birds**.\nIt");
    let chat = bench.ask(None, "How heavy is it?").chat.id;
    until_titled(&mut bench, "Weight of Birds");
    assert_eq!(title(&bench, chat), "Weight of Birds");
    let view = bench.ask(Some(chat), "And a wren?");
    assert_eq!(view.messages.len(), 4);
    let history = bench.script.last_turn().history;
    assert_eq!(history.len(), 3);
    std::thread::sleep(5 * TIMING.idle_after);
    assert_eq!(asides(&bench), 1, "it has a title");
    let undone = bench.chat.undo().unwrap().unwrap();
    let setting = "changed “Let the model name chats”";
    assert_eq!(
        undone.label, setting,
        "the title is no change of the user's"
    );
}

#[test]
fn no_title_is_made_unless_it_is_wanted() {
    let mut bench = Bench::new();
    bench.script.title("Weight of Birds");
    let chat = bench.ask(None, "How heavy?").chat.id;
    std::thread::sleep(5 * TIMING.idle_after);
    assert_eq!(
        (asides(&bench), title(&bench, chat).as_str()),
        (0, "How heavy?")
    );
}

#[test]
fn the_bundled_model_is_not_asked() {
    let mut bench = bench("Weight of Birds");
    bench.chat.open_model(ModelChoice::BundledModel).unwrap();
    bench.until_ready();
    let chat = bench.ask(None, "How heavy?").chat.id;
    std::thread::sleep(5 * TIMING.idle_after);
    assert_eq!(
        (asides(&bench), title(&bench, chat).as_str()),
        (0, "How heavy?")
    );
}

#[test]
fn a_title_of_the_user_s_stays() {
    let mut bench = bench("Weight of Birds");
    bench.script.beside().hold(true);
    let go = bench.script.go();
    bench.script.answer([
        crate::scripted::Step::Say("Six."),
        crate::scripted::Step::Wait,
    ]);
    let chat = bench.chat.send(None, "How heavy?", true).unwrap().chat.id;
    bench.script.beside().hold(false);
    bench.until_delta();
    bench.script.beside().hold(true);
    go.send(()).unwrap();
    bench.until_ended();
    bench.script.beside().until(&aside());
    // While the model thinks of a title, and again once it has one.
    bench.chat.rename(chat, "Mine").unwrap();
    bench.script.beside().hold(false);
    std::thread::sleep(5 * TIMING.idle_after);
    assert_eq!(title(&bench, chat), "Mine");
    bench.ask(Some(chat), "Sure?");
    std::thread::sleep(5 * TIMING.idle_after);
    assert_eq!((asides(&bench), title(&bench, chat).as_str()), (1, "Mine"));
}

#[test]
fn a_message_does_not_wait_for_a_title() {
    let mut bench = bench("Weight of Birds");
    let go = bench.script.go();
    bench.script.answer([
        crate::scripted::Step::Say("Six."),
        crate::scripted::Step::Wait,
    ]);
    let chat = bench.chat.send(None, "How heavy?", true).unwrap().chat.id;
    bench.until_delta();
    bench.script.beside().hold(true);
    go.send(()).unwrap();
    bench.until_ended();
    bench.script.beside().until(&aside());
    let before = std::time::Instant::now();
    bench.chat.send(Some(chat), "Sure?", true).unwrap();
    bench.script.beside().until(&Beside::Interrupted);
    bench.script.beside().hold(false);
    bench.until_ended();
    assert!(before.elapsed() < Duration::from_secs(2));
    // After the second answer there is time for it.
    until_titled(&mut bench, "Weight of Birds");
}

fn aside() -> Beside {
    Beside::Aside(
        "Give this chat a title of at most six words, in the language of my messages. \
         Answer with the title alone."
            .into(),
    )
}

#[test]
fn nonsense_is_no_title() {
    let mut bench = bench("\"…\"\n");
    let chat = bench.ask(None, "How heavy?").chat.id;
    std::thread::sleep(5 * TIMING.idle_after);
    assert_eq!(
        (asides(&bench), title(&bench, chat).as_str()),
        (1, "How heavy?")
    );
}
