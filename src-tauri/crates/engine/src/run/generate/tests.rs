//! Answers of a scripted model: the tokens that are passed on, and the reason of the end.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use inference::{Sampling, StopReason, ThinkingCut, TokenKind};

use super::*;
use crate::gguf::Gguf;
use crate::model::evaluate::Evaluate;
use crate::run::scripted::{Scripted, SelfSampling};
use crate::run::session::Session;
use crate::text::tokenizer::Tokenizer;

fn tokenizer() -> Tokenizer {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tokenizer.gguf");
    Tokenizer::from_gguf(&Gguf::open(&path).expect("the fixture")).expect("a tokenizer")
}

fn scheduler(model: impl Evaluate + 'static) -> Scheduler {
    let session = Session::new(Box::new(model));
    Scheduler::new(session, Arc::new(tokenizer()), 256)
}

#[derive(Debug, Default, PartialEq)]
struct Generated {
    thinking: String,
    answer: String,
    ids: Vec<u32>,
}

/// Generates with a model whose likeliest tokens are those of `text`, then `.`.
fn generate_text(text: &str, params: &GenerateParams) -> (Generated, Finished) {
    let tokenizer = tokenizer();
    let prompt = Prompt::of_ids(tokenizer.encode("abc abc abc", true));
    generate_after(&prompt, tokenizer.encode(text, true), params)
}

/// [`generate_text`] after a prompt, given the likeliest ids.
fn generate_after(
    prompt: &Prompt,
    says: Vec<u32>,
    params: &GenerateParams,
) -> (Generated, Finished) {
    generate_with(prompt, says, params, &Signals::default())
}

/// [`generate_after`] with flags.
fn generate_with(
    prompt: &Prompt,
    says: Vec<u32>,
    params: &GenerateParams,
    signals: &Signals,
) -> (Generated, Finished) {
    let tokenizer = tokenizer();
    let (read, vocab) = (prompt.ids.len(), tokenizer.vocabulary_size());
    let dot = tokenizer.encode(".", true)[0];
    let logits = move |tokens: &[u32]| {
        let mut logits = vec![0.0; vocab];
        logits[dot as usize] = 40.0;
        if let Some(&id) = says.get(tokens.len() - read) {
            logits[id as usize] = 80.0;
        }
        logits
    };
    let mut scheduler = scheduler(Scripted::new(logits, |_| {}));
    let mut generated = Generated::default();
    let finished = generate(&mut scheduler, prompt, params, signals, &mut |event| {
        if let Event::Token { id, piece, kind } = event {
            generated.ids.push(id);
            match kind {
                TokenKind::Thinking => generated.thinking.push_str(piece),
                TokenKind::Answer => generated.answer.push_str(piece),
                TokenKind::Call | TokenKind::Control => {}
            }
        }
    });
    let finished = finished.expect("no failure");
    // The last token is evaluated only to find that the turn ends after it.
    let unread = usize::from(finished.reason != StopReason::EndOfTurn);
    let held = &scheduler.sequences().next().expect("parked")[read..];
    assert_eq!(held, &generated.ids[..generated.ids.len() - unread]);
    (generated, finished)
}

fn params(temperature: f32, lookup: bool) -> GenerateParams {
    GenerateParams {
        sampling: Sampling {
            temperature,
            top_p: 1.0,
            seed: Some(3),
            ..Sampling::default()
        },
        max_tokens: Some(30),
        lookup,
        ..GenerateParams::default()
    }
}

#[test]
fn control_tokens_that_cannot_stand_in_an_answer_never_come() {
    for temperature in [0.0, 0.7] {
        for lookup in [false, true] {
            for control in [
                "<|im_start|>",
                "<|begin_of_text|>",
                "<|finetune_right_pad_id|>",
            ] {
                let text = format!("{control}a{control}{control}b<|im_end|>");
                let (generated, finished) = generate_text(&text, &params(temperature, lookup));
                assert_eq!(generated.answer, ".a..b", "{text} at {temperature}");
                assert_eq!(generated.thinking, "");
                assert_eq!(finished.reason, StopReason::EndOfTurn);
            }
        }
    }
}

#[test]
fn tags_still_come() {
    let (generated, _) = generate_text(
        "<think>\nHm\n</think>\nyes <tool_call>{}</tool_call><|im_end|>",
        &params(0.0, false),
    );
    assert_eq!(generated.thinking, "\nHm\n");
    assert_eq!(generated.answer, "\nyes <tool_call>{}</tool_call>");
}

#[test]
fn every_end_of_a_turn_ends_the_answer() {
    // The first one is in the file's metadata.
    for end in ["<|im_end|>", "<|end_of_text|>"] {
        for lookup in [false, true] {
            let (generated, finished) = generate_text(&format!("ab{end}cd"), &params(0.0, lookup));
            assert_eq!(generated.answer, "ab", "{end}");
            assert_eq!(finished.reason, StopReason::EndOfTurn, "{end}");
            assert_eq!(finished.stats.tokens, generated.ids.len(), "{end}");
        }
    }
}

#[test]
fn thinking_that_the_prompt_has_opened_is_thinking() {
    let tokenizer = tokenizer();
    let prompt = Prompt {
        starts_in: TokenKind::Thinking,
        ..Prompt::of_ids(tokenizer.encode("abc abc abc", true))
    };
    let says = tokenizer.encode("Hm\n</think>\nyes<|im_end|>", true);
    let (generated, finished) = generate_after(&prompt, says, &params(0.0, false));
    assert_eq!(
        (&*generated.thinking, &*generated.answer),
        ("Hm\n", "\nyes")
    );
    let thinking = tokenizer.encode("Hm\n", true).len();
    assert_eq!(finished.stats.thinking_tokens, thinking);
    assert_eq!(finished.stats.tokens, generated.ids.len());
}

#[test]
fn a_tag_within_the_answer_comes_as_text() {
    for lookup in [false, true] {
        for (text, thinking, answer) in [
            (
                "Use `<think> for</think> my job<|im_end|>",
                "",
                "Use `<think> for</think> my job",
            ),
            (
                "<think>\nHm, <think>?\n</think>\nUse `</think> for<think> my job<|im_end|>",
                "\nHm, <think>?\n",
                "\nUse `</think> for<think> my job",
            ),
        ] {
            let (generated, finished) = generate_text(text, &params(0.0, lookup));
            assert_eq!(
                (&*generated.thinking, &*generated.answer),
                (thinking, answer)
            );
            assert_eq!(finished.reason, StopReason::EndOfTurn);
            let thinking = tokenizer().encode(thinking, true).len();
            assert_eq!(finished.stats.thinking_tokens, thinking);
        }
    }
}

#[test]
fn a_tag_in_an_answer_that_goes_on_is_text() {
    let tokenizer = tokenizer();
    for starts_in in [TokenKind::Answer, TokenKind::Thinking] {
        for begun in [false, true] {
            let prompt = Prompt {
                starts_in,
                begun,
                ..Prompt::of_ids(tokenizer.encode("abc abc abc", true))
            };
            let says = tokenizer.encode("<think>a</think>b<|im_end|>", true);
            let (generated, _) = generate_after(&prompt, says, &params(0.0, false));
            let expected = match (starts_in, begun) {
                (TokenKind::Answer, true) => ["", "<think>a</think>b"],
                (TokenKind::Thinking, true) => ["<think>a", "b"],
                _ => ["a", "b"],
            };
            assert_eq!([&*generated.thinking, &*generated.answer], expected);
        }
    }
}

#[derive(Clone, Copy)]
enum Where {
    Host,
    Device,
}

/// Generates with a model that thinks until its thinking is ended, and then writes one sentence.
fn thinks_on(sampler: Where, answer_now: usize, params: &GenerateParams) -> (Generated, Finished) {
    let tokenizer = tokenizer();
    let prompt = Prompt::of_ids(tokenizer.encode("abc abc abc", true));
    let close = tokenizer.think_tags()[1].expect("a tag");
    let [think, y, dot] = ["<think>", "y", "."].map(|text| tokenizer.encode(text, true)[0]);
    let (begin, vocab) = (prompt.ids.len(), tokenizer.vocabulary_size());
    let end = tokenizer.turn_ends()[0];
    let logits = move |tokens: &[u32]| {
        let mut logits = vec![0.0; vocab];
        let said = &tokens[begin..];
        // After the end it would start to think again.
        logits[think as usize] = if said.is_empty() || said.contains(&close) {
            90.0
        } else {
            0.0
        };
        let next = match said.iter().position(|&id| id == close) {
            None => dot,
            Some(at) if said.len() < at + 5 => y,
            Some(_) => end,
        };
        logits[next as usize] = 80.0;
        logits
    };
    let model = Scripted::new(logits, |_| {});
    let mut scheduler = match sampler {
        Where::Host => scheduler(model),
        Where::Device => scheduler(SelfSampling::new(model)),
    };
    let signals = Signals::default();
    let now = &signals.answer_now;
    let mut generated = Generated::default();
    let finished = generate(&mut scheduler, &prompt, params, &signals, &mut |event| {
        if let Event::Token { id, piece, kind } = event {
            generated.ids.push(id);
            now.store(generated.ids.len() >= answer_now, Ordering::Relaxed);
            match kind {
                TokenKind::Thinking => generated.thinking.push_str(piece),
                TokenKind::Answer => generated.answer.push_str(piece),
                TokenKind::Call | TokenKind::Control => {}
            }
        }
    });
    let held = scheduler.sequences().next().expect("parked")[begin..].to_vec();
    assert_eq!(held, generated.ids, "the cache has what was reported");
    (generated, finished.expect("no failure"))
}

#[test]
fn thinking_ends_when_the_answer_is_asked_for_and_the_answer_goes_on_from_there() {
    let tokenizer = tokenizer();
    for (sampler, lookup) in [
        (Where::Host, false),
        (Where::Host, true),
        (Where::Device, false),
    ] {
        let (generated, finished) = thinks_on(sampler, 6, &params(0.0, lookup));
        let encode = |text| tokenizer.encode(text, true);
        let dots = encode(".").repeat(5);
        let written = [encode("<think>"), dots, encode("\n</think>\nyyy")].concat();
        assert_eq!(generated.ids, written);
        assert_eq!(
            (&*generated.thinking, &*generated.answer),
            (".....", "\nyyy")
        );
        assert_eq!(finished.reason, StopReason::EndOfTurn);
        assert_eq!(finished.stats.thinking_cut, Some(ThinkingCut::AnswerNow));
        assert_eq!(finished.stats.thinking_tokens, 5);
        assert_eq!(finished.stats.tokens, written.len());
    }
}

#[test]
fn thinking_has_no_more_tokens_than_its_budget() {
    let budget = |tokens| GenerateParams {
        thinking_budget: Some(tokens),
        ..params(0.0, false)
    };
    let each = |tokens| [(Where::Host, tokens), (Where::Device, tokens)];
    for (sampler, tokens) in [0, 1, 9].into_iter().flat_map(each) {
        let (generated, finished) = thinks_on(sampler, usize::MAX, &budget(tokens));
        assert_eq!(generated.thinking, ".".repeat(tokens));
        assert_eq!(generated.answer, "\nyyy");
        assert_eq!(finished.stats.thinking_tokens, tokens);
        assert_eq!(finished.stats.thinking_cut, Some(ThinkingCut::Budget));
    }
    let text = "<think>\nHm\n</think>\nyes<|im_end|>";
    let (generated, finished) = generate_text(text, &budget(20));
    assert_eq!(
        (&*generated.thinking, finished.stats.thinking_cut),
        ("\nHm\n", None)
    );
}

#[test]
fn the_answer_is_asked_for_in_vain_where_nothing_is_thought() {
    let tokenizer = tokenizer();
    let prompt = Prompt::of_ids(tokenizer.encode("abc abc abc", true));
    let says = tokenizer.encode("yes<|im_end|>", true);
    let signals = Signals::default();
    signals.answer_now.store(true, Ordering::Relaxed);
    let (generated, finished) = generate_with(&prompt, says, &params(0.0, false), &signals);
    assert_eq!(
        (&*generated.answer, finished.stats.thinking_cut),
        ("yes", None)
    );
}

#[test]
fn an_answer_that_goes_on_does_not_end_with_its_first_token() {
    for temperature in [0.0, 0.7] {
        for lookup in [false, true] {
            let goes_on = GenerateParams {
                goes_on: true,
                ..params(temperature, lookup)
            };
            let (generated, finished) = generate_text("<|im_end|>a<|im_end|>", &goes_on);
            assert_eq!(generated.answer, ".a");
            assert_eq!(finished.reason, StopReason::EndOfTurn);
        }
    }
}

#[test]
fn a_character_that_the_prompt_has_begun_comes_whole() {
    let tokenizer = tokenizer();
    let ids = tokenizer.encode("𒀀", false);
    assert!(ids.len() > 1, "a token for each of its parts");
    for begun in 1..ids.len() {
        let (prompt, rest) = ids.split_at(begun);
        let says = [rest, tokenizer.turn_ends()].concat();
        let (generated, _) =
            generate_after(&Prompt::of_ids(prompt.to_vec()), says, &params(0.0, false));
        assert_eq!(generated.answer, "𒀀", "{begun}");
    }
}

#[test]
fn the_figures_of_an_answer_are_those_of_its_passes() {
    const PASS: Duration = Duration::from_millis(20);
    let tokenizer = tokenizer();
    let id = tokenizer.encode(".", true)[0];
    let vocab = tokenizer.vocabulary_size();
    let logits = move |_: &[u32]| {
        let mut logits = vec![0.0; vocab];
        logits[id as usize] = 40.0;
        logits
    };
    let model = Scripted::new(logits, |_| std::thread::sleep(PASS));
    let mut scheduler = scheduler(model);
    let (prompt, never) = (Prompt::of_ids(vec![id; 100]), Signals::default());
    let params = GenerateParams {
        max_tokens: Some(3),
        ..params(0.0, false)
    };
    // Read in two passes, and then only its last token in one.
    for (cached, progress) in [
        (0, &[(0, 0), (64, 0), (100, 0)][..]),
        (99, &[(99, 99), (100, 99)]),
    ] {
        let mut generated = Vec::new();
        let finished = generate(&mut scheduler, &prompt, &params, &never, &mut |event| {
            if let Event::Prefill {
                done,
                total,
                cached,
            } = event
            {
                assert_eq!(total, 100);
                generated.push((done, cached));
            }
        });
        let stats = finished.expect("no failure").stats;
        assert_eq!(generated, progress);
        assert_eq!(
            (stats.prompt_tokens, stats.cached_tokens, stats.tokens),
            (100, cached, 3)
        );
        // In seconds.
        let prefill = (100 - cached) as f64 / stats.read_per_second;
        assert_eq!(stats.seed, 3);
        let passes = progress.len() - 1;
        assert!(prefill >= passes as f64 * PASS.as_secs_f64());
        assert!(stats.first_token_ms >= 1000.0 * prefill);
        // Two tokens after the first, each with a pass of its own before it.
        assert!(
            stats.tokens_per_second > 0.0 && stats.tokens_per_second <= 1.0 / PASS.as_secs_f64()
        );
    }
}

#[test]
fn each_token_has_its_log_probability_before_it() {
    let tokenizer = tokenizer();
    let prompt = Prompt::of_ids(tokenizer.encode("abc abc abc", true));
    let vocab = tokenizer.vocabulary_size();
    let logits = move |tokens: &[u32]| {
        let mut logits = vec![0.0; vocab];
        logits[tokens.len() % 7 + 100] = 20.0;
        logits[300] = 19.0;
        logits
    };
    let params = GenerateParams {
        max_tokens: Some(5),
        logprobs: Some(2),
        lookup: true,
        sampling: Sampling {
            temperature: 0.0,
            ..Sampling::default()
        },
        ..GenerateParams::default()
    };
    let mut scheduler = scheduler(Scripted::new(logits, |_| {}));
    let (mut ids, mut reported) = (Vec::new(), Vec::new());
    let on_event = &mut |event: Event<'_>| match event {
        Event::Token { id, .. } => ids.push(id),
        Event::Logprobs { id, logprob, top } => {
            assert_eq!(top[0], (id, logprob));
            assert_eq!(top[1].0, 300);
            // e⁻¹ is the weight of the second one.
            assert!((logprob.exp() - 0.731).abs() < 1e-3, "{logprob}");
            reported.push(id);
        }
        _ => {}
    };
    let finished = generate(
        &mut scheduler,
        &prompt,
        &params,
        &Signals::default(),
        on_event,
    );
    assert_eq!(finished.expect("an answer").stats.tokens, 5);
    assert_eq!(ids, reported);
    assert_eq!(ids.len(), 5);
}
