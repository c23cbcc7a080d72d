//! The bundled model behind chat's trait.

use std::sync::atomic::AtomicBool;

use chat::{ModelChoice, ModelHost, ModelOptions};
use engine::{GenerateParams, Role, Sampling, StopReason, TokenKind, Turn};
use tempfile::TempDir;

use super::*;
use crate::run_request::{request, run};

fn options() -> ModelOptions {
    ModelOptions {
        device: "cpu".into(),
        threads: Some(1),
        context_length: None,
        kv_type: chat::KvType::F16,
    }
}

fn bundled_model() -> EngineModel {
    let mut model = EngineModel::default();
    model
        .open(&ModelChoice::BundledModel, &options(), &mut |_| {})
        .expect("the bundled model opens");
    model
}

fn said(role: Role, text: &str, ids: Option<Vec<u32>>) -> Turn {
    Turn {
        ids,
        ..Turn::new(role, text)
    }
}

/// Input of an answer.
#[derive(Clone)]
struct Asked {
    conversation: Conversation,
    params: GenerateParams,
}

fn asked(messages: Vec<Turn>) -> Asked {
    let sampling = Sampling {
        temperature: 0.0,
        ..Sampling::default()
    };
    Asked {
        conversation: Conversation {
            messages,
            instructions: None,
            thinking: false,
            tools: std::sync::Arc::default(),
            today: jiff::civil::date(2026, 3, 5),
        },
        params: GenerateParams {
            sampling,
            ..GenerateParams::default()
        },
    }
}

fn limited(asked: &Asked, max_tokens: usize) -> Asked {
    let mut asked = asked.clone();
    asked.params.max_tokens = Some(max_tokens);
    asked
}

fn prompt_length(model: &mut EngineModel, conversation: &Conversation) -> Result<usize, Failure> {
    let prompt = model.prompt(conversation, &AtomicBool::new(false))?;
    Ok(prompt.ids.len())
}

type Pieces = Vec<(u32, String, TokenKind)>;

fn pieces(model: &mut EngineModel, asked: &Asked) -> (Pieces, Finished) {
    let never = AtomicBool::new(false);
    let prompt = model.prompt(&asked.conversation, &never).expect("a prompt");
    let mut pieces = Vec::new();
    let request = request(Priority::Answer, &prompt, &asked.params);
    let finished = run(model, request, &mut |event| {
        if let Event::Token { id, piece, kind } = event {
            pieces.push((id, piece.to_owned(), kind));
        }
    });
    (pieces, finished.expect("an answer"))
}

fn answer(model: &mut EngineModel, asked: &Asked) -> (String, Vec<u32>, Finished) {
    let (pieces, finished) = pieces(model, asked);
    let text = pieces.iter().map(|(_, piece, _)| piece.as_str()).collect();
    let ids = pieces.iter().map(|(id, _, _)| *id).collect();
    (text, ids, finished)
}

#[test]
fn a_long_context_uses_no_yarn_for_the_bundled_model() {
    let mut model = EngineModel::default();
    let long = ModelOptions {
        context_length: Some(131_072),
        ..options()
    };
    let mut open = |choice| model.open(&choice, &long, &mut |_| {}).expect("it opens");
    let info = open(ModelChoice::BundledModel);
    assert_eq!(info.context_length, 2048);
    let note = info.context_note.expect("it is said");
    assert!(note.contains("2,048 are used"), "{note}");
    // A file of the user is extended by YaRN, even the same file.
    let file = bundled_model::file().expect("the bundled model is there");
    assert_eq!(open(ModelChoice::File(file)).context_length, 4096);
}

#[test]
fn a_second_turn_goes_on_from_the_first() {
    let mut model = bundled_model();
    let question = said(Role::User, "What is Goldcrest?", None);
    let first = asked(vec![question.clone()]);
    let (text, ids, finish) = answer(&mut model, &first);
    assert_eq!(finish.reason, StopReason::EndOfTurn);
    assert_eq!(finish.stats.tokens, ids.len());
    assert_eq!(
        Ok(finish.stats.prompt_tokens),
        prompt_length(&mut model, &first.conversation)
    );

    let more = said(Role::User, "Who are you?", None);
    let second = asked(vec![
        question,
        said(Role::Assistant, &text, Some(ids.clone())),
        more,
    ]);
    let (_, _, after) = answer(&mut model, &second);
    assert!(after.stats.cached_tokens >= finish.stats.prompt_tokens + ids.len() - 1);
}

#[test]
fn an_answer_cut_short_goes_on_as_if_it_had_not_been() {
    let mut model = bundled_model();
    let question = said(Role::User, "What is Goldcrest?", None);
    let whole = asked(vec![question.clone()]);
    let (text, ids, _) = answer(&mut model, &whole);
    let (start, start_ids, finish) = answer(&mut model, &limited(&whole, 5));
    assert_eq!(finish.reason, StopReason::MaxTokens);
    assert_eq!(start_ids, ids[..5]);

    let partial = Turn {
        open: true,
        ..said(Role::Assistant, &start, Some(start_ids))
    };
    let resumed = asked(vec![question, partial]);
    let (rest, rest_ids, _) = answer(&mut model, &resumed);
    assert_eq!(rest_ids, ids[5..]);
    assert_eq!(start + &rest, text);
}

#[test]
fn a_bad_file_leaves_the_model_before_as_it_was() {
    let mut model = bundled_model();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("holiday.gguf");
    std::fs::write(&file, b"no model").expect("written");
    let failure = model
        .open(&ModelChoice::File(file), &options(), &mut |_| {})
        .expect_err("refused");
    assert_eq!(failure.code, FailureCode::BadModel);
    assert!(failure.message.contains("holiday.gguf"), "{failure}");
    assert!(model.info().is_some_and(|info| info.bundled_model));
    answer(
        &mut model,
        &asked(vec![said(Role::User, "Who are you?", None)]),
    );
}

#[test]
fn an_unknown_device_leaves_the_model_before_as_it_was() {
    let mut model = bundled_model();
    let wrong = ModelOptions {
        device: "abacus".into(),
        ..options()
    };
    let failure = model
        .open(&ModelChoice::BundledModel, &wrong, &mut |_| {})
        .expect_err("refused");
    assert_eq!(failure.code, FailureCode::Other);
    assert!(model.info().is_some());
}

/// Opens a model in a file of the user, with the bundled model's content.
fn opened_copy() -> (TempDir, std::path::PathBuf, EngineModel) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mine.gguf");
    std::fs::copy(bundled_model::file().expect("there"), &file).expect("copied");
    let mut model = EngineModel::default();
    model
        .open(&ModelChoice::File(file.clone()), &options(), &mut |_| {})
        .expect("it opens");
    (folder, file, model)
}

/// Returns the same content with another name in the header.
fn renamed(file: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(file).expect("read");
    let name = b"Tiny model";
    let at = bytes.windows(name.len()).position(|kind| kind == name);
    let at = at.expect("it is named so");
    bytes[at..at + name.len()].copy_from_slice(b"Tiny modeX");
    bytes
}

/// Fails to open another model, though its file is valid, so that the former one is reopened.
fn back_to_the_one_before(model: &mut EngineModel) -> ModelInfo {
    let wrong = ModelOptions {
        device: "abacus".into(),
        ..options()
    };
    let refused = model.open(&ModelChoice::BundledModel, &wrong, &mut |_| {});
    refused.expect_err("there is no such device");
    model.info().expect("it is open again").clone()
}

#[test]
fn the_model_before_comes_back_as_what_its_file_holds_by_then() {
    let (_folder, file, mut model) = opened_copy();
    let before = model.info().expect("open").clone();
    let other = renamed(&file);
    std::fs::write(&file, other).expect("written");
    let now = back_to_the_one_before(&mut model);
    assert_eq!(now.name, "Tiny modeX", "not other weights under its name");
    assert_ne!(now.fingerprint, before.fingerprint);
}

#[test]
fn a_model_whose_file_is_removed_or_replaced_while_it_is_open_comes_back_as_it_was() {
    let (folder, file, mut model) = opened_copy();
    let before = model.info().expect("open").clone();
    let other = folder.path().join("other");
    std::fs::write(&other, renamed(&file)).expect("written");
    std::fs::rename(&other, &file).expect("moved");
    assert_eq!(back_to_the_one_before(&mut model), before);
    // The file is gone, as after unplugging a drive.
    std::fs::remove_file(&file).expect("removed");
    let question = asked(vec![said(Role::User, "Who are you?", None)]);
    let (text, ..) = answer(&mut model, &question);
    assert!(!text.is_empty());
    assert_eq!(back_to_the_one_before(&mut model), before);
    // Its path counts only when it is opened again.
    let choice = ModelChoice::File(file);
    let gone = model.open(&choice, &options(), &mut |_| {});
    assert_eq!(gone.expect_err("gone").code, FailureCode::MissingModel);
    assert_eq!(model.info(), Some(&before), "the open one stays");
}

/// Makes a copy of the bundled model with an unknown chat template of the same length.
fn foreign(folder: &tempfile::TempDir) -> ModelChoice {
    let image = std::fs::read(bundled_model::file().expect("the bundled model")).expect("read");
    let known: &[u8] = b"{#- Chat template of the Goldcrest";
    let at = image.windows(known.len()).position(|kind| kind == known);
    let mut image = image.clone();
    image[at.expect("its template") + 4] = b'X';
    let file = folder.path().join("foreign.gguf");
    std::fs::write(&file, image).expect("written");
    ModelChoice::File(file)
}

#[test]
fn a_model_whose_template_is_unknown_names_the_chat_format_that_is_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut model = EngineModel::default();
    let info = model.open(&foreign(&folder), &options(), &mut |_| {});
    let info = info.expect("it opens");
    assert!(
        info.chat_format
            .starts_with("SmolLM3, chosen by the file's chat template"),
        "{}",
        info.chat_format
    );
    assert!(info.can_think);
}

#[test]
fn without_a_model_there_is_no_answer() {
    let mut model = EngineModel::default();
    let question = asked(vec![said(Role::User, "Hello?", None)]);
    let failure = prompt_length(&mut model, &question.conversation).expect_err("no model");
    assert_eq!(failure.code, FailureCode::NoModel);
}

#[test]
fn thinking_that_was_stopped_goes_on_as_thinking() {
    let mut model = bundled_model();
    let question = said(Role::User, "Tell me a story about a bird.", None);
    let mut thinking = asked(vec![question.clone()]);
    thinking.conversation.thinking = true;
    let (begun, _) = pieces(&mut model, &limited(&thinking, 6));
    let thought: String = begun
        .iter()
        .filter(|(_, _, kind)| *kind == TokenKind::Thinking)
        .map(|(_, text, _)| text.as_str())
        .collect();
    assert!(!thought.trim().is_empty(), "it thinks: {begun:?}");
    assert!(
        begun.iter().all(|(_, _, kind)| *kind != TokenKind::Answer),
        "{begun:?}"
    );

    let half = Turn {
        thinking: Some(thought),
        open: true,
        ..said(
            Role::Assistant,
            "",
            Some(begun.iter().map(|(id, _, _)| *id).collect()),
        )
    };
    thinking.conversation.messages = vec![question, half];
    let (_, text, kind) = pieces(&mut model, &limited(&thinking, 1)).0.remove(0);
    assert_eq!(kind, TokenKind::Thinking, "{text}");
}

#[test]
fn a_seed_gives_the_same_answer_and_another_seed_another() {
    let ask = |seed| {
        // A cold start each time: results from the cache are rounded differently.
        let mut model = bundled_model();
        let sampling = Sampling {
            temperature: 1.0,
            top_p: 1.0,
            seed: Some(seed),
            ..Sampling::default()
        };
        let question = said(Role::User, "Tell me a story about a bird.", None);
        let mut asked = limited(&asked(vec![question]), 30);
        asked.params.sampling = sampling;
        let (_, ids, finish) = answer(&mut model, &asked);
        assert_eq!(finish.stats.seed, seed);
        ids
    };
    let first = ask(7);
    assert_eq!(ask(7), first);
    assert!((8..16).any(|seed| ask(seed) != first));
}

/// Makes a folder with crash markers, and a model that checks them.
fn marked() -> (TempDir, CrashMarkers, EngineModel) {
    let folder = tempfile::tempdir().expect("a folder");
    let markers = CrashMarkers::new(folder.path());
    let model = EngineModel::default().marking(markers.clone());
    (folder, markers, model)
}

#[test]
fn a_file_over_which_the_app_crashed_is_refused_until_it_has_been_opened() {
    let (folder, markers, mut model) = marked();
    let file = folder.path().join("mine.gguf");
    std::fs::copy(crate::bundled_model::file().expect("there"), &file).expect("copied");
    let choice = ModelChoice::File(file);
    assert_eq!(model.refusal(&choice), None);
    let mark = serde_json::to_vec(&choice).expect("plain data");
    std::fs::write(folder.path().join("opening-1-2"), mark).expect("written");
    let failure = model.refusal(&choice).expect("refused");
    assert_eq!(failure.code, FailureCode::Crashed);
    assert_eq!(
        failure.message,
        "mine.gguf was not opened: the app ended the last time it was opened."
    );
    assert_eq!(model.refusal(&ModelChoice::BundledModel), None);

    // The marker of an opening in progress is no crash.
    let mut seen = Vec::new();
    let mark = markers.file(Work::Opening);
    model
        .open(&choice, &options(), &mut |_| seen.push(mark.exists()))
        .expect("it opens");
    assert!(!seen.is_empty() && seen.iter().all(|seen| *seen));
    assert!(!mark.exists());
    assert_eq!(model.refusal(&choice), None);
}

#[test]
fn a_file_that_is_refused_with_a_reason_leaves_no_mark() {
    let (folder, markers, mut model) = marked();
    let choice = ModelChoice::File(folder.path().join("none.gguf"));
    let opened = model.open(&choice, &options(), &mut |_| {});
    assert_eq!(opened.map_err(|it| it.code), Err(FailureCode::MissingModel));
    assert_eq!(markers.crashes::<ModelChoice>(Work::Opening), []);
    assert!(!markers.file(Work::Opening).exists());
}
