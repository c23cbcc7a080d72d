//! Drafts against a search of the whole text, their account, and answers with and without them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::{INCOME, LONGEST, Lookup, NGRAM, START, cost};
use crate::backend::BackendError;
use crate::forward::{Evaluate, Pass, Want};
use crate::generate::{Event, Finished, GenerateParams, Generator};
use crate::gguf::Gguf;
use crate::random::Random;
use crate::sampler::Sampling;
use crate::session::Session;
use crate::tokenizer::Tokenizer;

fn below(random: &mut Random, bound: usize) -> usize {
    (random.bits() % bound as u64) as usize
}

#[test]
fn a_draft_is_what_followed_the_last_time() {
    let mut random = Random::new(1);
    let mut found = 0;
    for _ in 0..200 {
        let alphabet = 2 + below(&mut random, 12);
        let (mut lookup, mut tokens) = (Lookup::new(), Vec::new());
        for _ in 0..30 {
            let more = 1 + below(&mut random, 9);
            tokens.extend((0..more).map(|_| below(&mut random, alphabet) as u32));
            let most = below(&mut random, LONGEST);
            let draft = lookup.draft(&tokens, most);
            assert!(draft.len() <= most);
            let at = (NGRAM..tokens.len())
                .rev()
                .find(|&at| tokens[at - NGRAM..at] == tokens[tokens.len() - NGRAM..]);
            let Some(at) = at else {
                assert!(draft.is_empty(), "{draft:?} is made up");
                continue;
            };
            let mut expected = tokens.clone();
            for i in at..at + draft.len() {
                expected.push(expected[i]);
            }
            assert_eq!(draft, expected[tokens.len()..]);
            found += draft.len();
        }
    }
    assert!(found > 1000, "the texts hardly repeat themselves: {found}");
}

#[test]
fn whatever_fails_costs_no_more_than_the_income() {
    let mut random = Random::new(2);
    for luck in [0, 1, 10, 50, 100] {
        let mut lookup = Lookup::new();
        let tokens = [1, 2, 3].repeat(20);
        let (mut generated, mut drafted, mut lost) = (0, 0, 0.0);
        while generated < 3000 {
            let draft = lookup.draft(&tokens, usize::MAX).len();
            let hits = (0..draft).take_while(|_| below(&mut random, 100) < luck);
            let accepted = hits.count();
            lookup.account(draft, accepted);
            generated += accepted + 1;
            drafted += draft;
            lost += cost(draft) - accepted as f32;
            assert!(
                lost <= START + INCOME * generated as f32 + 1e-2,
                "{lost} passes lost after {generated} tokens"
            );
        }
        if luck == 100 {
            assert!(
                drafted >= generated * LONGEST / (LONGEST + 1) - 2 * LONGEST,
                "full drafts where all of them are right: {drafted} of {generated}"
            );
        }
        assert!(drafted > 0, "it never stops trying");
    }
}

/// Logits after the tokens so far.
type Logits = dyn Fn(&[u32]) -> Vec<f32> + Send;

/// A model that is made up.
struct Scripted {
    logits: Box<Logits>,
    tokens: Vec<u32>,
    passes: Arc<AtomicUsize>,
}

impl Evaluate for Scripted {
    fn append(
        &mut self,
        ids: &[u32],
        want: Want,
        _: &AtomicBool,
        out: &mut Vec<f32>,
    ) -> Result<Pass, BackendError> {
        self.passes.fetch_add(1, Ordering::Relaxed);
        out.clear();
        for (i, &id) in ids.iter().enumerate() {
            self.tokens.push(id);
            if want == Want::All || want == Want::Last && i + 1 == ids.len() {
                out.extend((self.logits)(&self.tokens));
            }
        }
        Ok(Pass::Complete)
    }

    fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
    }

    fn chunk(&self) -> usize {
        64
    }

    fn kv_bytes(&self) -> usize {
        0
    }
}

struct Answer {
    ids: Vec<u32>,
    finished: Finished,
    passes: usize,
    /// What the cache holds afterwards.
    cached: Vec<u32>,
}

fn answer(
    prompt: &[u32],
    logits: impl Fn(&[u32]) -> Vec<f32> + Send + 'static,
    params: &GenerateParams,
) -> Answer {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tokenizer.gguf");
    let gguf = Gguf::open(&path).expect("the fixture is committed");
    let tokenizer = Tokenizer::from_gguf(&gguf).expect("a tokenizer");
    let passes = Arc::new(AtomicUsize::new(0));
    let mut session = Session::new(Box::new(Scripted {
        logits: Box::new(logits),
        tokens: Vec::new(),
        passes: Arc::clone(&passes),
    }));
    let mut ids = Vec::new();
    let mut generator = Generator {
        session: &mut session,
        tokenizer: &tokenizer,
        context: 512,
    };
    let finished = generator.run(prompt, params, &AtomicBool::new(false), &mut |event| {
        if let Event::Token { id, .. } = event {
            ids.push(id);
        }
    });
    Answer {
        ids,
        finished: finished.expect("no failure"),
        passes: passes.load(Ordering::Relaxed),
        cached: session.tokens().to_vec(),
    }
}

fn params(temperature: f32, seed: u64, max_tokens: Option<usize>, lookup: bool) -> GenerateParams {
    GenerateParams {
        sampling: Sampling {
            temperature,
            seed: Some(seed),
            repeat_penalty: 1.05,
            ..Sampling::default()
        },
        max_tokens,
        lookup,
        ..GenerateParams::default()
    }
}

/// Every token depends on the two before it.
fn chain(vocab: usize) -> impl Fn(&[u32]) -> Vec<f32> + Send + 'static {
    move |tokens| {
        let before = tokens.iter().rev().take(2);
        let mut random = Random::new(before.fold(0, |seed, &id| 31 * seed + u64::from(id)));
        (0..vocab).map(|_| 8.0 * random.unit() as f32).collect()
    }
}

#[test]
fn drafts_change_nothing_but_the_number_of_passes() {
    let (mut drafted, mut accepted) = (0, 0);
    for seed in 0..60 {
        let vocab = 4 + seed as usize % 20;
        let most = [None, Some(1), Some(2), Some(7), Some(100)][seed as usize % 5];
        let temperature = [0.0, 0.6, 1.2][seed as usize % 3];
        let run = |lookup| {
            let params = params(temperature, seed, most, lookup);
            answer(&[1, 2, 3], chain(vocab), &params)
        };
        let (plain, guessed) = (run(false), run(true));
        assert_eq!(plain.ids, guessed.ids, "seed {seed}");
        assert_eq!(plain.finished.reason, guessed.finished.reason);
        assert_eq!(plain.finished.stats.generated, plain.ids.len());
        assert_eq!(guessed.finished.stats.generated, guessed.ids.len());
        assert_eq!(plain.finished.stats.drafted, 0);
        let whole = [&[1, 2, 3], &guessed.ids[..]].concat();
        assert!(whole.starts_with(&guessed.cached), "seed {seed}");
        assert!(guessed.passes <= plain.passes);
        drafted += guessed.finished.stats.drafted;
        accepted += guessed.finished.stats.accepted;
    }
    assert!(
        accepted > 1000 && drafted > accepted + 100,
        "{accepted} of {drafted} drafted tokens were right: both must occur"
    );
}

#[test]
fn an_edit_of_the_prompt_takes_few_passes() {
    const VOCAB: u32 = 400;
    let mut random = Random::new(3);
    let prompt: Vec<u32> = (0..150)
        .map(|_| below(&mut random, VOCAB as usize) as u32)
        .collect();
    // The prompt again, with every 15th token changed.
    let edit = |at: usize| (prompt[at] + u32::from(at % 15 == 14)) % VOCAB;
    let script = [&prompt[..], &(0..150).map(edit).collect::<Vec<_>>()].concat();
    let run = |lookup| {
        let script = script.clone();
        let next = move |tokens: &[u32]| {
            let mut logits = vec![0.0; VOCAB as usize];
            logits[script[tokens.len() % script.len()] as usize] = 9.0;
            logits
        };
        answer(&prompt, next, &params(0.0, 1, Some(150), lookup))
    };
    let (plain, guessed) = (run(false), run(true));
    assert_eq!(guessed.ids, script[150..]);
    assert_eq!(plain.ids, guessed.ids);
    assert_eq!(plain.passes, 152, "three chunks of prompt");
    assert!(
        3 * guessed.passes <= 2 * plain.passes,
        "{} passes where {} read one token each",
        guessed.passes,
        plain.passes
    );
}
