//! A chat that is reopened in another run of the app: no block is prefilled again, and the answer is that of a cold
//! run.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use chat::{ChatId, KvType, ModelOptions, NEW_CHAT};
use engine::{Conversation, GenerateParams, Role, Sampling, Turn};
use tempfile::TempDir;

use super::*;
use crate::run_request::{CHAT, request, run};

static NEVER: AtomicBool = AtomicBool::new(false);

/// Starts the app with its KV caches in `folder`.
fn start(folder: &Path, kv_type: KvType) -> EngineModel {
    let options = ModelOptions {
        device: "cpu".into(),
        threads: Some(2),
        context_length: None,
        kv_type,
    };
    let mut model = EngineModel::default().keeping_caches(folder);
    model
        .open(&ModelChoice::BundledModel, &options, &mut |_| {})
        .expect("the bundled model opens");
    model
}

/// Makes a conversation of a question of some 700 tokens, and the given turns.
fn conversation(turns: &[&str]) -> Conversation {
    let words = |at: usize| format!("Number {at} of a list that the bundled model reads. ");
    let mut messages = vec![Turn::new(
        Role::User,
        (0..60).map(words).collect::<String>(),
    )];
    for (at, text) in turns.iter().enumerate() {
        let role = [Role::Assistant, Role::User][at % 2];
        messages.push(Turn::new(role, *text));
    }
    Conversation {
        messages,
        instructions: None,
        thinking: false,
        tools: std::sync::Arc::default(),
        today: jiff::civil::date(2026, 3, 5),
    }
}

/// Returns the ids of the answer, and the number of prompt tokens that were not prefilled.
fn answer(model: &mut EngineModel, conversation: &Conversation) -> (Vec<u32>, usize) {
    let prompt = model.prompt(conversation, &NEVER).expect("a prompt");
    answer_prompt(model, &prompt)
}

fn params() -> GenerateParams {
    GenerateParams {
        sampling: Sampling {
            temperature: 0.0,
            ..Sampling::default()
        },
        max_tokens: Some(6),
        ..GenerateParams::default()
    }
}

/// [`answer`] to a prompt.
fn answer_prompt(model: &mut EngineModel, prompt: &Prompt) -> (Vec<u32>, usize) {
    let mut ids = Vec::new();
    let request = request(Priority::Answer, prompt, &params());
    let finished = run(model, request, &mut |event| {
        if let Event::Token { id, .. } = event {
            ids.push(id);
        }
    });
    (ids, finished.expect("an answer").stats.cached_tokens)
}

fn read_ahead(model: &mut EngineModel, chat: ChatId, prompt: &Prompt) {
    let ahead = ModelRequest {
        conversation: chat.0.cast_unsigned(),
        ..request(Priority::ReadAhead, prompt, &params())
    };
    run(model, ahead, &mut |_| {}).expect("no failure");
}

fn keep_all(model: &mut EngineModel) {
    while model.save_caches() {}
}

fn blocks(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("blocks")).expect("a folder");
    entries.map(|entry| entry.expect("read").path()).collect()
}

#[test]
fn a_chat_of_an_earlier_run_is_not_read_again() {
    let folder = TempDir::new().expect("a folder");
    let nowhere = TempDir::new().expect("a folder");
    let turns = ["It is a list.", "How long is it?"];
    for kv_type in [KvType::F16, KvType::Q8_0] {
        let mut first = start(folder.path(), kv_type);
        answer(&mut first, &conversation(&[]));
        keep_all(&mut first);
        drop(first);
        assert!(!blocks(folder.path()).is_empty());
        let (cold, read) = answer(&mut start(nowhere.path(), kv_type), &conversation(&turns));
        assert_eq!(read, 0);
        let (found, read) = answer(&mut start(folder.path(), kv_type), &conversation(&turns));
        assert!(read >= 512, "{read} tokens were taken up");
        assert_eq!(found, cold);
    }

    // Damaged, and erased with the chat.
    let (cold, _) = answer(
        &mut start(nowhere.path(), KvType::F16),
        &conversation(&turns),
    );
    for path in blocks(folder.path()) {
        let mut bytes = fs::read(&path).expect("read");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
        fs::write(&path, bytes).expect("written");
    }
    let mut damaged = start(folder.path(), KvType::F16);
    assert_eq!(
        answer(&mut damaged, &conversation(&turns)),
        (cold.clone(), 0)
    );
    keep_all(&mut damaged);
    assert!(!blocks(folder.path()).is_empty(), "it is kept again");
    damaged.retain_chats(&[CHAT]);
    assert!(!blocks(folder.path()).is_empty());
    damaged.retain_chats(&[ChatId(8)]);
    assert_eq!(blocks(folder.path()), Vec::<PathBuf>::new());

    // If the folder cannot be created, prompts are prefilled as usual.
    let file = folder.path().join("file");
    fs::write(&file, "x").expect("written");
    let mut without = start(&file, KvType::F16);
    assert_eq!(answer(&mut without, &conversation(&turns)), (cold, 0));
    assert!(!without.save_caches());
}

#[test]
fn the_tokens_that_are_read_ahead_are_those_of_the_sent_message() {
    let nowhere = TempDir::new().expect("a folder");
    let mut model = start(nowhere.path(), KvType::F16);
    let mut prompt = |turns: &[&str]| {
        let prompt = model.prompt(&conversation(turns), &NEVER);
        prompt.expect("a prompt")
    };
    let chat = prompt(&["It is a list.", ""]);
    let draft = prompt(&["It is a list.", "How long"]);
    let sent = prompt(&["It is a list.", "How long is it?"]);
    let common = |other: &Prompt| {
        let pairs = other.ids.iter().zip(&sent.ids);
        pairs.take_while(|(a, b)| a == b).count()
    };
    let (chat, drafted) = (common(&chat), common(&draft));
    assert!(drafted > chat, "of the draft, too");
    read_ahead(&mut model, CHAT, &draft);
    assert_eq!(answer_prompt(&mut model, &sent).1, drafted);
}

#[test]
fn on_battery_nothing_is_read_ahead() {
    let read = |on_battery: fn() -> bool| {
        let folder = TempDir::new().expect("a folder");
        let mut model = start(folder.path(), KvType::F16);
        model.power = Power(on_battery);
        let prompt = model.prompt(&conversation(&[]), &NEVER).expect("a prompt");
        read_ahead(&mut model, CHAT, &prompt);
        answer(&mut model, &conversation(&[])).1
    };
    assert!(read(|| false) > 0);
    assert_eq!(read(|| true), 0);
}

#[test]
fn nothing_of_a_chat_that_was_deleted_is_kept() {
    let folder = TempDir::new().expect("a folder");
    let mut model = start(folder.path(), KvType::F16);
    answer(&mut model, &conversation(&[]));
    model.forget(&[CHAT]);
    keep_all(&mut model);
    assert_eq!(blocks(folder.path()), Vec::<PathBuf>::new());
}

#[test]
fn a_draft_of_a_new_chat_keeps_nothing_of_a_chat_that_is_deleted() {
    let folder = TempDir::new().expect("a folder");
    let mut model = start(folder.path(), KvType::F16);
    answer(&mut model, &conversation(&[]));
    keep_all(&mut model);
    assert!(!blocks(folder.path()).is_empty());
    drop(model);
    // The same text in a new chat, after a restart: it is on the disk already.
    let mut model = start(folder.path(), KvType::F16);
    let draft = model.prompt(&conversation(&[]), &NEVER).expect("a prompt");
    read_ahead(&mut model, NEW_CHAT, &draft);
    let engine = &model.open.as_ref().expect("open").model.engine;
    assert!(engine.sequences().any(|tokens| !tokens.is_empty()));
    keep_all(&mut model);
    model.retain_chats(&[NEW_CHAT]);
    assert_eq!(blocks(folder.path()), Vec::<PathBuf>::new());
    // Nor is it written again.
    keep_all(&mut model);
    assert_eq!(blocks(folder.path()), Vec::<PathBuf>::new());
}

#[test]
fn the_counter_knows_what_need_not_be_read_in_memory_and_on_the_disk() {
    let folder = TempDir::new().expect("a folder");
    let asked = conversation(&["It is a list.", "How long is it?"]);
    let counted = |model: &EngineModel| {
        let counter = model.counter().expect("a model is open");
        let frame = counter.frame(&asked).expect("a frame");
        let mut ids = frame.head.clone();
        for turn in &asked.messages {
            ids.extend(&counter.message(&frame, turn).ids);
        }
        ids.extend(&frame.tail);
        let cached = counter.cached(&ids);
        (ids, cached)
    };
    let mut model = start(folder.path(), KvType::F16);
    let (ids, cached) = counted(&model);
    assert_eq!(ids, model.prompt(&asked, &NEVER).expect("a prompt").ids);
    assert_eq!(cached, 0);
    let (_, reused) = answer(&mut model, &asked);
    assert_eq!(reused, 0);
    assert_eq!(counted(&model).1, ids.len(), "all of it is in memory");
    keep_all(&mut model);
    drop(model);

    let mut model = start(folder.path(), KvType::F16);
    let (_, cached) = counted(&model);
    assert!(cached >= 512, "{cached} on the disk");
    let (_, reused) = answer(&mut model, &asked);
    assert_eq!(cached, reused);
    model.close();
    assert!(model.counter().is_none());
}
