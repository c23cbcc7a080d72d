//! Answers of a model that is made up: which of its tokens come through, and what ends it.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::forward::{Evaluate, Want};
use crate::gguf::Gguf;

/// A model that wants to say a text: its tokens, each far likelier than any other.
struct Scripted {
    prompt: usize,
    says: Vec<u32>,
    /// Half as far above the others.
    second: u32,
    vocab: usize,
    tokens: usize,
}

impl Evaluate for Scripted {
    fn append(
        &mut self,
        ids: &[u32],
        want: Want,
        _: &AtomicBool,
        out: &mut Vec<f32>,
    ) -> Result<Pass, BackendError> {
        out.clear();
        for i in 0..ids.len() {
            self.tokens += 1;
            if want == Want::All || want == Want::Last && i + 1 == ids.len() {
                let mut logits = vec![0.0; self.vocab];
                logits[self.second as usize] = 40.0;
                if let Some(&id) = self.says.get(self.tokens - self.prompt) {
                    logits[id as usize] = 80.0;
                }
                out.extend(logits);
            }
        }
        Ok(Pass::Complete)
    }

    fn truncate(&mut self, len: usize) {
        self.tokens = self.tokens.min(len);
    }

    fn chunk(&self) -> usize {
        4
    }

    fn few(&self) -> usize {
        9
    }

    fn kv_bytes(&self) -> usize {
        0
    }
}

fn tokenizer() -> Tokenizer {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tokenizer.gguf");
    Tokenizer::from_gguf(&Gguf::open(&path).expect("the fixture")).expect("a tokenizer")
}

#[derive(Debug, Default, PartialEq)]
struct Heard {
    thinking: String,
    answer: String,
    ids: Vec<u32>,
}

/// What comes of a model that wants to say `text`, and `.` where it may not.
fn hear(text: &str, params: &GenerateParams) -> (Heard, Finished) {
    let tokenizer = tokenizer();
    let prompt = tokenizer.encode("abc abc abc", true);
    let mut session = Session::new(Box::new(Scripted {
        prompt: prompt.len(),
        says: tokenizer.encode(text, true),
        second: tokenizer.encode(".", true)[0],
        vocab: tokenizer.vocabulary_size(),
        tokens: 0,
    }));
    let mut generator = Generator {
        session: &mut session,
        tokenizer: &tokenizer,
        context: 256,
    };
    let mut heard = Heard::default();
    let finished = generator.run(&prompt, params, &AtomicBool::new(false), &mut |event| {
        if let Event::Token { id, piece, part } = event {
            heard.ids.push(id);
            match part {
                Part::Thinking => heard.thinking.push_str(piece),
                Part::Answer => heard.answer.push_str(piece),
                Part::Control => {}
            }
        }
    });
    (heard, finished.expect("no failure"))
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
        starts_in: Part::Answer,
        lookup,
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
                let (heard, finished) = hear(&text, &params(temperature, lookup));
                assert_eq!(heard.answer, ".a..b", "{text} at {temperature}");
                assert_eq!(heard.thinking, "");
                assert_eq!(finished.reason, StopReason::EndOfTurn);
            }
        }
    }
}

#[test]
fn tags_still_come() {
    let (heard, _) = hear(
        "<think>\nHm\n</think>\nyes <tool_call>{}</tool_call><|im_end|>",
        &params(0.0, false),
    );
    assert_eq!(heard.thinking, "\nHm\n");
    assert_eq!(heard.answer, "\nyes <tool_call>{}</tool_call>");
}

#[test]
fn every_end_of_a_turn_ends_the_answer() {
    // The first is the one that the file names.
    for end in ["<|im_end|>", "<|end_of_text|>"] {
        for lookup in [false, true] {
            let (heard, finished) = hear(&format!("ab{end}cd"), &params(0.0, lookup));
            assert_eq!(heard.answer, "ab", "{end}");
            assert_eq!(finished.reason, StopReason::EndOfTurn, "{end}");
            assert_eq!(finished.stats.generated, heard.ids.len(), "{end}");
        }
    }
}

#[test]
fn thinking_that_the_prompt_has_opened_is_thinking() {
    let params = GenerateParams {
        starts_in: Part::Thinking,
        ..params(0.0, false)
    };
    let (heard, finished) = hear("Hm\n</think>\nyes<|im_end|>", &params);
    assert_eq!((&*heard.thinking, &*heard.answer), ("Hm\n", "\nyes"));
    let thinking = tokenizer().encode("Hm\n", true).len();
    assert_eq!(finished.stats.thinking, thinking);
    assert_eq!(finished.stats.generated, heard.ids.len());
}
