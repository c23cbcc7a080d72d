//! The starter behind chat's trait.

use std::sync::atomic::AtomicBool;

use chat::{
    Finish, Generate, HistoryMessage, LoadOptions, ModelChoice, Piece, Role, Sampling, StopReason,
    Turn,
};

use super::*;

fn options() -> LoadOptions {
    LoadOptions {
        device: "cpu".into(),
        threads: Some(1),
        context_length: None,
        kv_type: chat::KvType::F16,
    }
}

fn starter() -> EngineModel {
    let mut model = EngineModel::default();
    model
        .open(&ModelChoice::Starter, &options(), &mut |_| {})
        .expect("the starter opens");
    model
}

fn said(role: Role, text: &str, ids: Option<Vec<u32>>) -> HistoryMessage {
    HistoryMessage {
        role,
        text: text.to_owned(),
        thinking: None,
        ids,
    }
}

fn turn(history: Vec<HistoryMessage>) -> Turn {
    Turn {
        history,
        instructions: None,
        thinking: false,
        today: jiff::civil::date(2026, 3, 5),
        sampling: Sampling {
            temperature: 0.0,
            ..Sampling::default()
        },
        max_tokens: None,
        lookup: false,
        resume: false,
    }
}

fn answer(model: &mut EngineModel, turn: &Turn) -> (String, Vec<u32>, Finish) {
    let (mut text, mut ids) = (String::new(), Vec::new());
    let finish = model
        .generate(turn, &AtomicBool::new(false), &mut |piece| {
            if let Piece::Token { id, text: more, .. } = piece {
                ids.push(id);
                text.push_str(more);
            }
        })
        .expect("an answer");
    (text, ids, finish)
}

#[test]
fn a_second_turn_goes_on_from_the_first() {
    let mut model = starter();
    let question = said(Role::User, "What is Goldcrest?", None);
    let first = turn(vec![question.clone()]);
    let (text, ids, finish) = answer(&mut model, &first);
    assert_eq!(finish.reason, StopReason::EndOfTurn);
    assert_eq!(finish.stats.tokens as usize, ids.len());
    assert_eq!(
        finish.stats.prompt_tokens as usize,
        model
            .count(&first, &AtomicBool::new(false))
            .expect("counted")
    );

    let more = said(Role::User, "Who are you?", None);
    let second = turn(vec![
        question,
        said(Role::Assistant, &text, Some(ids.clone())),
        more,
    ]);
    let (_, _, after) = answer(&mut model, &second);
    assert!(
        after.stats.cached_tokens as usize >= finish.stats.prompt_tokens as usize + ids.len() - 1
    );
}

#[test]
fn an_answer_cut_short_goes_on_as_if_it_had_not_been() {
    let mut model = starter();
    let question = said(Role::User, "What is Goldcrest?", None);
    let whole = turn(vec![question.clone()]);
    let (text, ids, _) = answer(&mut model, &whole);
    let (start, start_ids, finish) = answer(
        &mut model,
        &Turn {
            max_tokens: Some(5),
            ..whole
        },
    );
    assert_eq!(finish.reason, StopReason::MaxTokens);
    assert_eq!(start_ids, ids[..5]);

    let resumed = Turn {
        resume: true,
        ..turn(vec![
            question,
            said(Role::Assistant, &start, Some(start_ids)),
        ])
    };
    let (rest, rest_ids, _) = answer(&mut model, &resumed);
    assert_eq!(rest_ids, ids[5..]);
    assert_eq!(start + &rest, text);
}

#[test]
fn a_bad_file_leaves_the_model_before_as_it_was() {
    let mut model = starter();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("holiday.gguf");
    std::fs::write(&file, b"no model").expect("written");
    let failure = model
        .open(&ModelChoice::File(file), &options(), &mut |_| {})
        .expect_err("refused");
    assert_eq!(failure.code, FailureCode::BadModel);
    assert!(failure.message.contains("holiday.gguf"), "{failure}");
    assert!(model.info().is_some_and(|info| info.starter));
    answer(
        &mut model,
        &turn(vec![said(Role::User, "Who are you?", None)]),
    );
}

#[test]
fn an_unknown_device_leaves_the_model_before_as_it_was() {
    let mut model = starter();
    let wrong = LoadOptions {
        device: "abacus".into(),
        ..options()
    };
    let failure = model
        .open(&ModelChoice::Starter, &wrong, &mut |_| {})
        .expect_err("refused");
    assert_eq!(failure.code, FailureCode::Invalid);
    assert!(model.info().is_some());
}

#[test]
fn without_a_model_there_is_no_answer() {
    let mut model = EngineModel::default();
    let question = turn(vec![said(Role::User, "Hello?", None)]);
    let failure = model
        .count(&question, &AtomicBool::new(false))
        .expect_err("no model");
    assert_eq!(failure.code, FailureCode::NoModel);
}
