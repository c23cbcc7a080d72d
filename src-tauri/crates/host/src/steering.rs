//! Steering of the bundled model: an answer, its continuation, and a title beside the chat.

use std::sync::atomic::{AtomicBool, Ordering};

use chat::{KvType, ModelOptions};
use engine::{
    Conversation, GenerateParams, Role, Sampling, StopReason, ThinkingCut, TokenKind, Turn,
};

use super::*;
use crate::run_request::{request, run};

static NEVER: AtomicBool = AtomicBool::new(false);

fn bundled_model() -> EngineModel {
    let options = ModelOptions {
        device: "cpu".into(),
        threads: Some(1),
        context_length: None,
        kv_type: KvType::F16,
    };
    let mut model = EngineModel::default();
    model
        .open(&ModelChoice::BundledModel, &options, &mut |_| {})
        .expect("the bundled model opens");
    model
}

fn conversation(messages: &[Turn], thinking: bool) -> Conversation {
    Conversation {
        messages: messages.to_vec(),
        instructions: None,
        thinking,
        tools: std::sync::Arc::default(),
        today: jiff::civil::date(2026, 3, 5),
    }
}

fn params(max_tokens: usize) -> GenerateParams {
    GenerateParams {
        sampling: Sampling {
            temperature: 0.0,
            ..Sampling::default()
        },
        max_tokens: Some(max_tokens),
        ..GenerateParams::default()
    }
}

struct Answer {
    thinking: String,
    text: String,
    ids: Vec<u32>,
    finished: Finished,
}

impl Answer {
    fn turn(&self) -> Turn {
        Turn {
            thinking: Some(self.thinking.clone()).filter(|thinking| !thinking.is_empty()),
            ids: Some(self.ids.clone()),
            ..Turn::new(Role::Assistant, self.text.trim_start())
        }
    }
}

/// Generates an answer; `answer_after`: sets `answer_now` after this number of tokens.
fn answer(
    model: &mut EngineModel,
    conversation: &Conversation,
    params: &GenerateParams,
    answer_after: usize,
) -> Answer {
    let prompt = model.prompt(conversation, &NEVER).expect("a prompt");
    let request = request(Priority::Answer, &prompt, params);
    let answer_now = Arc::clone(&request.signals.answer_now);
    let (mut thinking, mut text, mut ids) = (String::new(), String::new(), Vec::new());
    let finished = run(model, request, &mut |event| {
        if let Event::Token { id, piece, kind } = event {
            ids.push(id);
            answer_now.store(ids.len() >= answer_after, Ordering::Relaxed);
            match kind {
                TokenKind::Thinking => thinking.push_str(piece),
                TokenKind::Answer => text.push_str(piece),
                TokenKind::Call | TokenKind::Control => {}
            }
        }
    });
    Answer {
        thinking,
        text,
        ids,
        finished: finished.expect("an answer"),
    }
}

fn question(text: &str) -> Turn {
    Turn::new(Role::User, text)
}

#[test]
fn the_bundled_model_answers_when_it_is_asked_to_and_the_cache_matches() {
    let mut model = bundled_model();
    let mut messages = vec![question("Write fizzbuzz in Rust.")];
    let first = answer(&mut model, &conversation(&messages, true), &params(200), 6);
    assert_eq!(
        first.finished.stats.thinking_cut,
        Some(ThinkingCut::AnswerNow)
    );
    assert!(!first.thinking.trim().is_empty() && !first.text.trim().is_empty());
    messages.extend([first.turn(), question("And in C?")]);
    let read = first.finished.stats.prompt_tokens + first.ids.len();
    let second = answer(
        &mut model,
        &conversation(&messages, true),
        &params(5),
        usize::MAX,
    );
    assert!(
        second.finished.stats.cached_tokens + 1 >= read,
        "{} of {read}",
        second.finished.stats.cached_tokens
    );
}

#[test]
fn the_bundled_model_keeps_to_its_budget() {
    let mut model = bundled_model();
    let messages = [question("Write fizzbuzz in Rust.")];
    let budget = GenerateParams {
        thinking_budget: Some(3),
        ..params(200)
    };
    let short = answer(
        &mut model,
        &conversation(&messages, true),
        &budget,
        usize::MAX,
    );
    let stats = &short.finished.stats;
    assert_eq!(
        (stats.thinking_tokens, stats.thinking_cut),
        (3, Some(ThinkingCut::Budget))
    );
    assert!(!short.text.trim().is_empty());
}

#[test]
fn a_complete_answer_goes_on() {
    let mut model = bundled_model();
    let mut messages = vec![question("Hello!")];
    let whole = answer(
        &mut model,
        &conversation(&messages, false),
        &params(200),
        usize::MAX,
    );
    assert_eq!(whole.finished.reason, StopReason::EndOfTurn);
    messages.push(Turn {
        open: true,
        ..whole.turn()
    });
    let open = conversation(&messages, false);
    let ends = answer(&mut model, &open, &params(20), usize::MAX);
    assert_eq!(ends.finished.stats.tokens, 0, "by itself it ends at once");
    let goes_on = GenerateParams {
        goes_on: true,
        ..params(20)
    };
    let more = answer(&mut model, &open, &goes_on, usize::MAX);
    assert!(more.finished.stats.tokens > 0);
    assert_eq!(
        more.finished.stats.cached_tokens + 1,
        more.finished.stats.prompt_tokens
    );
}

#[test]
fn what_is_said_beside_a_chat_leaves_it_its_cache() {
    let title = question("Give this chat a title of at most six words.");
    let mut next = Vec::new();
    for (beside, cancelled) in [(false, false), (true, false), (true, true)] {
        let mut model = bundled_model();
        let mut messages = vec![question("What is Goldcrest?")];
        let first = answer(
            &mut model,
            &conversation(&messages, true),
            &params(200),
            usize::MAX,
        );
        messages.push(first.turn());
        if beside {
            let asked = [&messages[..], std::slice::from_ref(&title)].concat();
            let prompt = model
                .prompt(&conversation(&asked, true), &NEVER)
                .expect("a prompt");
            let mut said = 0;
            let params = GenerateParams {
                thinking_budget: Some(0),
                ..params(24)
            };
            let request = request(Priority::Title, &prompt, &params);
            let cancel = Arc::clone(&request.signals.cancel);
            let finished = run(&mut model, request, &mut |event| {
                said += usize::from(matches!(event, Event::Token { .. }));
                cancel.store(cancelled && said == 2, Ordering::Relaxed);
            });
            let finished = finished.expect("no failure");
            assert_eq!(said == 2, cancelled);
            assert_eq!(finished.reason == StopReason::Cancelled, cancelled);
        }
        messages.push(question("And then?"));
        let second = answer(
            &mut model,
            &conversation(&messages, true),
            &params(20),
            usize::MAX,
        );
        next.push((second.finished.stats.cached_tokens, second.ids));
    }
    assert!(next[0].0 > 100, "{}", next[0].0);
    assert_eq!(next[1], next[0], "as without");
    assert_eq!(next[2], next[0], "as without");

    // No title is made for a chat that is not in memory.
    let mut model = bundled_model();
    answer(
        &mut model,
        &conversation(&[question("Hello!")], true),
        &params(9),
        usize::MAX,
    );
    let prompt = model.prompt(&conversation(&[question("Other?"), title], true), &NEVER);
    let request = request(Priority::Title, &prompt.expect("a prompt"), &params(9));
    let finished = run(&mut model, request, &mut |_| {}).expect("no failure");
    assert_eq!(
        (finished.reason, finished.stats.tokens),
        (StopReason::Cancelled, 0)
    );
}
