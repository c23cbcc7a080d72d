//! Sequences restored from memory or from blocks give the logits of a cold run, bit for bit.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use kernels::{Cpu, CpuLevel, KvType};

use super::*;
use crate::gguf::Gguf;
use crate::model::config::Config;
use crate::model::forward::CpuModel;
use crate::model::weights;

mod reading_ahead;

static NEVER: AtomicBool = AtomicBool::new(false);
static ALWAYS: AtomicBool = AtomicBool::new(true);
const BLOCK: usize = KvCache::SEGMENT;

/// Blocks in memory.
#[derive(Default)]
struct Kept {
    blocks: HashMap<Vec<u32>, Vec<u8>>,
    labels: Vec<(u64, usize)>,
    full: bool,
    /// A conversation that is not stored.
    secret: Option<u64>,
}

impl KvBlocks for Kept {
    fn load(&mut self, tokens: &[u32], first: usize, each: &mut dyn FnMut(&[u8]) -> bool) {
        let ends = (first + BLOCK..=tokens.len()).step_by(BLOCK);
        for block in ends.map_while(|end| self.blocks.get(&tokens[..end])) {
            if !each(block) {
                return;
            }
        }
    }

    fn holds(&mut self, label: u64, tokens: &[u32]) -> bool {
        let holds = self.blocks.contains_key(tokens);
        if holds {
            self.labels.push((label, tokens.len()));
        }
        holds
    }

    fn keeps(&self, label: u64) -> bool {
        self.secret != Some(label)
    }

    fn store(&mut self, label: u64, tokens: &[u32], block: &[u8]) -> bool {
        if !self.full {
            self.labels.push((label, tokens.len()));
            self.blocks.insert(tokens.to_vec(), block.to_vec());
        }
        !self.full
    }
}

#[derive(Clone, Copy)]
struct Model {
    file: &'static str,
    kv: KvType,
    /// Longer than trained: YaRN.
    context: usize,
    chunk: usize,
    level: CpuLevel,
}

impl Model {
    fn usual() -> Self {
        Self {
            file: "tiny-q4_k_m",
            kv: KvType::F16,
            context: 4096,
            chunk: BLOCK,
            level: CpuLevel::best(),
        }
    }

    fn session(self) -> Session {
        let path = format!("tests/fixtures/{}.gguf", self.file);
        let gguf = Gguf::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("there");
        let config = Config::from_gguf(&gguf).expect("a SmolLM3 file");
        let config = config.for_context(self.context);
        let cpu = Cpu::new(2, self.level);
        let weights = weights::load(&cpu, &gguf, &config, &mut |_| {}).expect("its weights");
        let model = CpuModel::new(config, cpu, weights, self.kv, self.chunk).expect("memory");
        Session::new(Box::new(model.with_block(BLOCK.min(self.chunk))))
    }
}

fn tokens(seed: u32, count: u32) -> Vec<u32> {
    (0..count)
        .map(|at| (at * 37 + seed * 101 + at * at % 13) % 512)
        .collect()
}

/// The logits after `prompt`, and how much of it was in the cache.
fn read(session: &mut Session, prompt: &[u32]) -> (Vec<f32>, usize) {
    read_after(session, prompt, 0)
}

/// Reads a prompt like [`read`]; its first `settled` tokens belong to the conversation.
fn read_after(session: &mut Session, prompt: &[u32], settled: usize) -> (Vec<f32>, usize) {
    let mut cached = None;
    let pass = session.prefill(prompt, settled, &NEVER, &mut |done| {
        cached.get_or_insert(done);
    });
    assert_eq!(pass.expect("no failure"), Pass::Complete);
    assert_eq!(session.tokens(), prompt);
    (session.logits(0).to_vec(), cached.expect("progress"))
}

/// Runs a turn: a prompt, and an answer that is decoded.
fn converse(session: &mut Session, prompt: &[u32], answer: &[u32]) {
    read(session, prompt);
    for id in answer {
        let pass = session.step(*id, &[], &NEVER).expect("no failure");
        assert_eq!(pass, Pass::Complete);
    }
}

/// Restores the stored blocks; returns the progress.
fn resume(session: &mut Session, prompt: &[u32], label: u64, kept: &mut Kept) -> Vec<usize> {
    resume_after(session, prompt, 0, label, kept)
}

/// Restores like [`resume`]; the first `settled` tokens of the prompt belong to the conversation.
fn resume_after(
    session: &mut Session,
    prompt: &[u32],
    settled: usize,
    label: u64,
    kept: &mut Kept,
) -> Vec<usize> {
    let mut progress = Vec::new();
    session.resume(prompt, settled, label, Some(kept), &NEVER, &mut |done| {
        progress.push(done);
    });
    progress
}

/// Reads all whole blocks ahead, of a chat with `settled` tokens.
fn read_ahead(session: &mut Session, prompt: &[u32], settled: usize) {
    while session
        .read_ahead(prompt, settled, &NEVER)
        .expect("no failure")
    {}
}

fn keep_all(session: &mut Session, kept: &mut Kept) {
    let mut steps = 0;
    while session.keep(kept, true, &NEVER).expect("no failure") {
        steps += 1;
        assert!(steps < 100, "it comes to an end");
    }
}

#[test]
fn a_pass_over_several_blocks_gives_the_bits_of_a_pass_over_each() {
    for level in CpuLevel::available() {
        for kv in [KvType::F16, KvType::Q8_0] {
            let of = |chunk| {
                let model = Model {
                    kv,
                    chunk,
                    level,
                    ..Model::usual()
                };
                let (mut session, mut kept) = (model.session(), Kept::default());
                let (logits, _) = read(&mut session, &tokens(1, 500));
                session.sequence.settled = 500;
                keep_all(&mut session, &mut kept);
                (logits, kept.blocks)
            };
            let one = of(BLOCK);
            assert_eq!(one.1.len(), 3);
            for blocks in [2, 3] {
                assert!(of(blocks * BLOCK) == one, "{level}, {kv:?}: other bits");
            }
        }
    }
}

#[test]
fn a_chat_that_is_taken_up_again_goes_on_as_a_cold_run_does() {
    let q8_0 = Model {
        kv: KvType::Q8_0,
        ..Model::usual()
    };
    let yarn_of_the_file = Model {
        file: "tiny-yarn-q8_0",
        ..Model::usual()
    };
    let yarn_of_the_context = Model {
        context: 8192,
        ..Model::usual()
    };
    let small_chunks = Model {
        chunk: 32,
        ..Model::usual()
    };
    let two_blocks = Model {
        chunk: 2 * BLOCK,
        ..Model::usual()
    };
    for model in [
        Model::usual(),
        q8_0,
        yarn_of_the_file,
        yarn_of_the_context,
        small_chunks,
        two_blocks,
    ] {
        let chat = tokens(1, 400);
        let mut kept = Kept::default();
        // Three of four blocks hold answers and differ from those of a cold run; they are evaluated again.
        let mut session = model.session();
        converse(&mut session, &chat[..140], &chat[140..250]);
        converse(&mut session, &chat[..300], &chat[300..400]);
        keep_all(&mut session, &mut kept);
        assert_eq!(kept.blocks.len(), 3);
        let next = tokens(2, 200);
        // At a boundary of blocks, beside it, and between; the whole chat, and a branch of it.
        for (common, more) in [
            (400, 1),
            (384, 1),
            (383, 9),
            (256, 9),
            (200, 1),
            (127, 9),
            (3, 1),
        ] {
            let prompt = [&chat[..common], &next[..more]].concat();
            let (cold, _) = read(&mut model.session(), &prompt);
            let mut again = model.session();
            resume(&mut again, &prompt, 7, &mut kept);
            let (found, cached) = read(&mut again, &prompt);
            assert_eq!(cached, common / BLOCK * BLOCK, "{common} and {more}");
            assert!(found == cold, "{common} and {more}: other bits");
        }
        // Exactly this prompt: the last token is evaluated for its logits.
        let mut again = model.session();
        resume(&mut again, &chat[..384], 7, &mut kept);
        let (found, cached) = read(&mut again, &chat[..384]);
        assert_eq!(cached, 256);
        assert!(found == read(&mut model.session(), &chat[..384]).0);
    }
}

#[test]
fn blocks_that_are_missing_or_of_another_length_are_evaluated() {
    let chat = tokens(1, 400);
    let mut kept = Kept::default();
    let mut session = Model::usual().session();
    read(&mut session, &chat);
    keep_all(&mut session, &mut kept);
    let (cold, _) = read(&mut Model::usual().session(), &chat);
    let damages: [fn(&mut Vec<u8>); 3] = [
        |block| block.truncate(10),
        |block| block.push(0),
        |block| block.clear(),
    ];
    for (at, cached) in [(1, 0), (2, 128), (3, 256)] {
        for damage in damages {
            let mut kept = Kept {
                blocks: kept.blocks.clone(),
                ..Kept::default()
            };
            damage(kept.blocks.get_mut(&chat[..at * BLOCK]).expect("kept"));
            let mut again = Model::usual().session();
            resume(&mut again, &chat, 7, &mut kept);
            assert!(read(&mut again, &chat) == (cold.clone(), cached));
        }
        let mut missing = Kept {
            blocks: kept.blocks.clone(),
            ..Kept::default()
        };
        missing.blocks.remove(&chat[..at * BLOCK]);
        let mut again = Model::usual().session();
        resume(&mut again, &chat, 7, &mut missing);
        assert!(read(&mut again, &chat) == (cold.clone(), cached));
    }
}

#[test]
fn a_step_that_is_cancelled_or_refused_changes_nothing() {
    let chat = tokens(1, 300);
    let mut session = Model::usual().session();
    converse(&mut session, &chat[..40], &chat[40..]);
    let before = session.kv_cache().expect("a cache").clone();
    let mut kept = Kept::default();
    assert!(session.keep(&mut kept, true, &ALWAYS).expect("no failure"));
    let after = session.kv_cache().expect("a cache");
    let block = |cache: &KvCache| cache.block(0, 2 * BLOCK).expect("memory");
    assert_eq!((after.len(), block(after)), (300, block(&before)));
    assert_eq!(session.tokens(), chat);
    assert!(kept.blocks.is_empty());
    // A full disk ends it, until space is free again.
    kept.full = true;
    keep_all(&mut session, &mut kept);
    assert!(kept.blocks.is_empty());
    kept.full = false;
    keep_all(&mut session, &mut kept);
    assert_eq!(kept.blocks.len(), 2);
    let (_, cached) = read(&mut session, &[&chat[..], &[5]].concat());
    assert_eq!(cached, 300, "the rest stays in memory");
}

#[test]
fn several_chats_stay_in_memory_within_a_budget() {
    let (first, second) = (tokens(1, 300), tokens(2, 300));
    let budget = |bytes: u64| {
        let mut session = Model::usual().session();
        session.set_spare_memory(Box::new(move |_, _| bytes));
        for (label, chat) in [(1, &first), (2, &second)] {
            session.resume(chat, 0, label, None, &NEVER, &mut |_| {});
            read(&mut session, chat);
        }
        session
    };
    let next = |chat: &[u32]| [chat, &[9]].concat();
    let mut session = budget(1 << 30);
    for chat in [&first, &second, &first] {
        session.resume(&next(chat), 0, 1, None, &NEVER, &mut |_| {});
        assert_eq!(read(&mut session, &next(chat)).1, 300);
        session.truncate(300);
    }
    let mut session = budget(1000);
    session.resume(&next(&first), 0, 1, None, &NEVER, &mut |_| {});
    assert_eq!(read(&mut session, &next(&first)).1, 0, "it had no room");
    // The sequence of an erased chat is removed.
    let mut session = budget(1 << 30);
    session.retain(|label| label == 2);
    assert_eq!(read(&mut session, &next(&first)).1, 0);
    // A chat that was parked before it was stored is stored as well, under its own label.
    let mut session = budget(1 << 30);
    let mut kept = Kept::default();
    keep_all(&mut session, &mut kept);
    kept.labels.sort_unstable();
    assert_eq!(kept.labels, [(1, 128), (1, 256), (2, 128), (2, 256)]);
}

#[test]
fn another_branch_shares_what_is_common_and_leaves_the_first_as_it_is() {
    let (common, first, second) = (tokens(1, 150), tokens(2, 150), tokens(3, 150));
    let branch = |rest: &[u32]| [&common[..], rest].concat();
    let mut session = Model::usual().session();
    session.set_spare_memory(Box::new(|_, _| 1 << 30));
    let before = read(&mut session, &branch(&first)).0;
    assert_eq!(read(&mut session, &branch(&second)).1, 150);
    let (after, cached) = read(&mut session, &branch(&first));
    assert_eq!(cached, 299);
    // The last token in a pass of its own differs in the last bits; an overwritten one differs entirely.
    let square = |values: &mut dyn Iterator<Item = f32>| values.map(|v| v * v).sum::<f32>();
    let error = square(&mut before.iter().zip(&after).map(|(a, b)| a - b));
    let apart = (error / square(&mut before.iter().copied())).sqrt();
    assert!(apart < 0.05, "{apart} apart");
}

#[test]
fn taking_up_a_chat_tells_how_far_it_is_and_can_be_cancelled() {
    let chat = tokens(1, 400);
    let mut kept = Kept::default();
    let mut session = Model::usual().session();
    read(&mut session, &chat);
    keep_all(&mut session, &mut kept);
    let progress = resume(&mut Model::usual().session(), &chat, 7, &mut kept);
    assert_eq!(progress, [128, 256, 384]);
    let mut session = Model::usual().session();
    read(&mut session, &tokens(2, 700));
    let mut progress = Vec::new();
    session.resume(&chat, 0, 7, Some(&mut kept), &ALWAYS, &mut |done| {
        progress.push(done);
    });
    assert_eq!(progress, Vec::<usize>::new());
    assert_eq!(session.kv_bytes(), 0, "the cache before was freed first");
    assert_eq!(read(&mut session, &chat).1, 0);
}

#[test]
fn a_long_prompt_behind_a_shared_header_is_canonical_at_once() {
    let header = tokens(1, 200);
    let prompt = |seed| [&header[..], &tokens(seed, 600)].concat();
    let mut session = Model::usual().session();
    read(&mut session, &prompt(2));
    let (found, cached) = read(&mut session, &prompt(3));
    assert_eq!(cached, 128);
    assert!(found == read(&mut Model::usual().session(), &prompt(3)).0);
    assert_eq!(session.sequence.canonical, 768);
    // A short prompt continues from the cached positions.
    let question = [&prompt(3)[..], &[5; 100]].concat();
    assert_eq!(read(&mut session, &question).1, 800);
}

#[test]
fn without_evaluation_only_what_is_canonical_is_kept() {
    let (first, second) = (tokens(1, 300), tokens(2, 300));
    let mut session = Model::usual().session();
    session.set_spare_memory(Box::new(|_, _| 1 << 30));
    session.resume(&first, 0, 1, None, &NEVER, &mut |_| {});
    read(&mut session, &first);
    session.resume(&second, 0, 2, None, &NEVER, &mut |_| {});
    converse(&mut session, &second[..150], &second[150..]);
    let mut kept = Kept::default();
    while session.keep(&mut kept, false, &NEVER).expect("no failure") {}
    kept.labels.sort_unstable();
    assert_eq!(kept.labels, [(1, 128), (1, 256), (2, 128)]);
}

#[test]
fn a_chat_that_is_not_to_be_kept_is_passed_over_and_holds_up_no_other() {
    let (first, second) = (tokens(1, 300), tokens(2, 300));
    for secret in [1, 2] {
        let mut session = Model::usual().session();
        session.set_spare_memory(Box::new(|_, _| 1 << 30));
        for (label, chat) in [(1, &first), (2, &second)] {
            session.resume(chat, 0, label, None, &NEVER, &mut |_| {});
            read(&mut session, chat);
        }
        let mut kept = Kept {
            secret: Some(secret),
            ..Kept::default()
        };
        keep_all(&mut session, &mut kept);
        let other = 3 - secret;
        assert_eq!(kept.labels, [(other, 128), (other, 256)]);
    }
}

#[test]
fn what_was_read_of_a_chat_goes_with_it_under_another_label() {
    let (first, second) = (tokens(1, 300), tokens(2, 300));
    let mut session = Model::usual().session();
    session.set_spare_memory(Box::new(|_, _| 1 << 30));
    let mut kept = Kept {
        secret: Some(9),
        ..Kept::default()
    };
    for (label, chat) in [(1, &first), (2, &second)] {
        session.resume(chat, 0, label, None, &NEVER, &mut |_| {});
        read(&mut session, chat);
    }
    for label in [1, 2] {
        session.relabel(label, 9);
        session.retain(|of| of != label);
    }
    keep_all(&mut session, &mut kept);
    assert_eq!(kept.labels, [], "none of it is kept as blocks");
    for chat in [&first, &second] {
        session.resume(chat, 0, 9, Some(&mut kept), &NEVER, &mut |_| {});
        assert_eq!(session.tokens(), &chat[..]);
    }
    session.relabel(9, 1);
    keep_all(&mut session, &mut kept);
    assert_eq!(kept.blocks.len(), 4, "all of both is kept from now on");
}

#[test]
fn the_current_chat_stays_where_there_is_no_room_to_keep_another() {
    let (first, second) = (tokens(1, 300), tokens(2, 700));
    let mut session = Model::usual().session();
    session.set_spare_memory(Box::new(|_, _| 1 << 30));
    for (label, chat) in [(1, &first), (2, &second)] {
        session.resume(chat, 0, label, None, &NEVER, &mut |_| {});
        read(&mut session, chat);
    }
    let room = session.parked.bytes();
    session.set_spare_memory(Box::new(move |_, _| room));
    let mut kept = Kept::default();
    keep_all(&mut session, &mut kept);
    assert!(kept.labels.iter().all(|(label, _)| *label == 2));
    assert_eq!(
        (session.tokens(), session.parked.bytes()),
        (&second[..], room)
    );
    // Nor does one that has no room push the others out.
    session.resume(&[7], 0, 3, None, &NEVER, &mut |_| {});
    assert_eq!(session.parked.bytes(), room);
}

#[test]
fn nothing_of_a_chat_that_is_erased_stays_in_memory() {
    let chat = tokens(1, 300);
    let mut session = Model::usual().session();
    session.resume(&chat, 0, 1, None, &NEVER, &mut |_| {});
    read(&mut session, &chat);
    session.retain(|label| label == 1);
    assert_eq!(session.tokens(), chat);
    session.retain(|label| label == 2);
    assert_eq!((session.tokens().len(), session.kv_bytes()), (0, 0));
    assert!(
        !session
            .keep(&mut Kept::default(), true, &NEVER)
            .expect("no failure")
    );
}
