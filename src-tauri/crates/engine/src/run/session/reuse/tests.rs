//! Sequences restored from memory or from blocks give the logits of a cold run, within rounding.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use kernels::{Cpu, CpuLevel, KvType};

use super::*;
use crate::gguf::Gguf;
use crate::model::config::Config;
use crate::model::forward::CpuModel;
use crate::model::weights;
use crate::run::kv_blocks::NoBlocks;
use crate::run::session::tests::{ROUNDING, assert_close, read, tokens};

mod reading_ahead;

static NEVER: AtomicBool = AtomicBool::new(false);
static ALWAYS: AtomicBool = AtomicBool::new(true);
const BLOCK: usize = KvCache::SEGMENT;

/// Blocks in memory.
#[derive(Default)]
struct Blocks {
    stored: HashMap<Vec<u32>, Vec<u8>>,
    labels: Vec<(u64, usize)>,
    full: bool,
    /// A conversation that is not stored.
    secret: Option<u64>,
}

impl KvBlocks for Blocks {
    fn load(&mut self, tokens: &[u32], first: usize, each: &mut dyn FnMut(&[u8]) -> bool) {
        let ends = (first + BLOCK..=tokens.len()).step_by(BLOCK);
        for block in ends.map_while(|end| self.stored.get(&tokens[..end])) {
            if !each(block) {
                return;
            }
        }
    }

    fn holds(&mut self, label: u64, tokens: &[u32]) -> bool {
        let holds = self.stored.contains_key(tokens);
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
            self.stored.insert(tokens.to_vec(), block.to_vec());
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

/// Runs a turn: a prompt, and an answer that is decoded.
fn converse(session: &mut Session, prompt: &[u32], answer: &[u32]) {
    read(session, prompt);
    for id in answer {
        let pass = session.step(*id, &[], &NEVER).expect("no failure");
        assert_eq!(pass, Pass::Complete);
    }
}

/// Restores the stored blocks; returns the progress.
fn resume(session: &mut Session, prompt: &[u32], blocks: &mut Blocks) -> Vec<usize> {
    let mut progress = Vec::new();
    session.resume(prompt, 7, blocks, &NEVER, &mut |done| {
        progress.push(done);
    });
    progress
}

/// Reads all of a prompt ahead, of which the first `sent` tokens are sent.
fn read_ahead(session: &mut Session, prompt: &[u32], sent: usize) {
    while session
        .read_ahead(prompt, sent, &NEVER)
        .expect("no failure")
    {}
}

fn store_all(session: &mut Session, blocks: &mut Blocks) {
    let mut steps = 0;
    while session.store_block(blocks).expect("memory") {
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
                let (mut session, mut blocks) = (model.session(), Blocks::default());
                let (logits, _) = read(&mut session, &tokens(1, 500));
                store_all(&mut session, &mut blocks);
                (logits, blocks.stored)
            };
            let one = of(BLOCK);
            assert_eq!(one.1.len(), 3);
            for blocks in [2, 3] {
                assert!(of(blocks * BLOCK) == one, "{level}, {kv:?}: other bits");
            }
        }
    }
}

/// The usual model, and variations of everything that the values of a cache depend on.
fn variations() -> [Model; 6] {
    let usual = Model::usual();
    [
        usual,
        Model {
            kv: KvType::Q8_0,
            ..usual
        },
        Model {
            file: "tiny-yarn-q8_0",
            ..usual
        },
        Model {
            context: 8192,
            ..usual
        },
        Model { chunk: 32, ..usual },
        Model {
            chunk: 2 * BLOCK,
            ..usual
        },
    ]
}

/// Bound of the relative distance between the logits of a chat and those of a cold run: decoding rounds differently than
/// prefill, and random weights amplify that. A wrong position or block gives a difference around 1.
const BOUND: f64 = 0.1;

#[test]
fn a_restored_chat_is_as_near_to_a_cold_run_as_one_in_memory() {
    for model in variations() {
        let chat = tokens(1, 400);
        let mut warm = model.session();
        warm.set_spare_memory(Box::new(|_, _| 1 << 30));
        converse(&mut warm, &chat[..140], &chat[140..250]);
        converse(&mut warm, &chat[..300], &chat[300..]);
        let mut blocks = Blocks::default();
        store_all(&mut warm, &mut blocks);
        assert_eq!(blocks.stored.len(), 3, "with the decoded tokens");
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
            let (in_memory, cached) = read(&mut warm, &prompt);
            assert_eq!(cached, common);
            let mut again = model.session();
            resume(&mut again, &prompt, &mut blocks);
            let (restored, cached) = read(&mut again, &prompt);
            assert_eq!(cached, common / BLOCK * BLOCK, "{common} and {more}");
            assert_close(&in_memory, &cold, BOUND);
            assert_close(&restored, &cold, BOUND);
            if cached == common {
                assert!(restored == in_memory, "{common} and {more}: other bits");
            }
        }
        // Exactly this prompt: the last token is evaluated for its logits.
        let mut again = model.session();
        resume(&mut again, &chat[..384], &mut blocks);
        assert_eq!(read(&mut again, &chat[..384]).1, 256);
    }
}

#[test]
fn blocks_that_are_missing_or_of_another_length_are_evaluated() {
    let chat = tokens(1, 400);
    let mut blocks = Blocks::default();
    let mut session = Model::usual().session();
    read(&mut session, &chat);
    store_all(&mut session, &mut blocks);
    let (cold, _) = read(&mut Model::usual().session(), &chat);
    let damages: [fn(&mut Vec<u8>); 3] = [
        |block| block.truncate(10),
        |block| block.push(0),
        |block| block.clear(),
    ];
    for (at, cached) in [(1, 0), (2, 128), (3, 256)] {
        for damage in damages {
            let mut blocks = Blocks {
                stored: blocks.stored.clone(),
                ..Blocks::default()
            };
            damage(blocks.stored.get_mut(&chat[..at * BLOCK]).expect("stored"));
            let mut again = Model::usual().session();
            resume(&mut again, &chat, &mut blocks);
            assert!(read(&mut again, &chat) == (cold.clone(), cached));
        }
        let mut missing = Blocks {
            stored: blocks.stored.clone(),
            ..Blocks::default()
        };
        missing.stored.remove(&chat[..at * BLOCK]);
        let mut again = Model::usual().session();
        resume(&mut again, &chat, &mut missing);
        assert!(read(&mut again, &chat) == (cold.clone(), cached));
    }
}

#[test]
fn a_full_disk_ends_storing_until_space_is_free_again() {
    let chat = tokens(1, 300);
    let mut session = Model::usual().session();
    read(&mut session, &chat);
    let mut blocks = Blocks {
        full: true,
        ..Blocks::default()
    };
    store_all(&mut session, &mut blocks);
    assert!(blocks.stored.is_empty());
    blocks.full = false;
    store_all(&mut session, &mut blocks);
    assert_eq!(blocks.stored.len(), 2);
    let (_, cached) = read(&mut session, &[&chat[..], &[5]].concat());
    assert_eq!(cached, 300, "the rest stays in memory");
}

#[test]
fn a_block_of_which_tokens_were_replaced_is_stored_again() {
    let (chat, other) = (tokens(1, 300), tokens(2, 100));
    let mut session = Model::usual().session();
    let mut blocks = Blocks::default();
    read(&mut session, &chat);
    store_all(&mut session, &mut blocks);
    let branch = [&chat[..200], &other].concat();
    read(&mut session, &branch);
    store_all(&mut session, &mut blocks);
    let ends = [&chat[..128], &chat[..256], &branch[..256]];
    assert_eq!(blocks.stored.len(), ends.len());
    assert!(
        ends.iter()
            .all(|tokens| blocks.stored.contains_key(*tokens))
    );
}

#[test]
fn several_chats_stay_in_memory_within_a_budget() {
    let (first, second) = (tokens(1, 300), tokens(2, 300));
    let budget = |bytes: u64| {
        let mut session = Model::usual().session();
        session.set_spare_memory(Box::new(move |_, _| bytes));
        for (label, chat) in [(1, &first), (2, &second)] {
            session.resume(chat, label, &mut NoBlocks, &NEVER, &mut |_| {});
            read(&mut session, chat);
        }
        session
    };
    let next = |chat: &[u32]| [chat, &[9]].concat();
    let mut session = budget(1 << 30);
    for chat in [&first, &second, &first] {
        session.resume(&next(chat), 1, &mut NoBlocks, &NEVER, &mut |_| {});
        assert_eq!(read(&mut session, &next(chat)).1, 300);
        session.truncate(300);
    }
    let mut session = budget(1000);
    session.resume(&next(&first), 1, &mut NoBlocks, &NEVER, &mut |_| {});
    assert_eq!(read(&mut session, &next(&first)).1, 0, "it had no room");
    // The sequence of an erased chat is removed.
    let mut session = budget(1 << 30);
    session.retain(|label| label == 2);
    assert_eq!(read(&mut session, &next(&first)).1, 0);
    // A chat that was parked before it was stored is stored as well, under its own label.
    let mut session = budget(1 << 30);
    let mut blocks = Blocks::default();
    store_all(&mut session, &mut blocks);
    blocks.labels.sort_unstable();
    assert_eq!(blocks.labels, [(1, 128), (1, 256), (2, 128), (2, 256)]);
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
    assert_close(&after, &before, ROUNDING);
}

#[test]
fn taking_up_a_chat_tells_how_far_it_is_and_can_be_cancelled() {
    let chat = tokens(1, 400);
    let mut blocks = Blocks::default();
    let mut session = Model::usual().session();
    read(&mut session, &chat);
    store_all(&mut session, &mut blocks);
    let progress = resume(&mut Model::usual().session(), &chat, &mut blocks);
    assert_eq!(progress, [128, 256, 384]);
    let mut session = Model::usual().session();
    read(&mut session, &tokens(2, 700));
    let mut progress = Vec::new();
    session.resume(&chat, 7, &mut blocks, &ALWAYS, &mut |done| {
        progress.push(done);
    });
    assert_eq!(progress, Vec::<usize>::new());
    assert_eq!(session.kv_bytes(), 0, "the cache before was freed first");
    assert_eq!(read(&mut session, &chat).1, 0);
}

#[test]
fn a_chat_that_is_not_to_be_stored_is_passed_over_and_holds_up_no_other() {
    let (first, second) = (tokens(1, 300), tokens(2, 300));
    for secret in [1, 2] {
        let mut session = Model::usual().session();
        session.set_spare_memory(Box::new(|_, _| 1 << 30));
        for (label, chat) in [(1, &first), (2, &second)] {
            session.resume(chat, label, &mut NoBlocks, &NEVER, &mut |_| {});
            read(&mut session, chat);
        }
        let mut blocks = Blocks {
            secret: Some(secret),
            ..Blocks::default()
        };
        store_all(&mut session, &mut blocks);
        let other = 3 - secret;
        assert_eq!(blocks.labels, [(other, 128), (other, 256)]);
    }
}

#[test]
fn what_was_read_of_a_chat_goes_with_it_under_another_label() {
    let (first, second) = (tokens(1, 300), tokens(2, 300));
    let mut session = Model::usual().session();
    session.set_spare_memory(Box::new(|_, _| 1 << 30));
    let mut blocks = Blocks {
        secret: Some(9),
        ..Blocks::default()
    };
    for (label, chat) in [(1, &first), (2, &second)] {
        session.resume(chat, label, &mut NoBlocks, &NEVER, &mut |_| {});
        read(&mut session, chat);
    }
    for label in [1, 2] {
        session.relabel(label, 9);
        session.retain(|of| of != label);
    }
    store_all(&mut session, &mut blocks);
    assert_eq!(blocks.labels, [], "none of it is stored");
    for chat in [&first, &second] {
        session.resume(chat, 9, &mut blocks, &NEVER, &mut |_| {});
        assert_eq!(session.tokens(), &chat[..]);
    }
    session.relabel(9, 1);
    store_all(&mut session, &mut blocks);
    assert_eq!(blocks.stored.len(), 4, "all of both is stored from now on");
}

#[test]
fn parked_chats_are_stored_while_the_current_one_stays() {
    let (first, second) = (tokens(1, 300), tokens(2, 700));
    let mut session = Model::usual().session();
    session.set_spare_memory(Box::new(|_, _| 1 << 30));
    for (label, chat) in [(1, &first), (2, &second)] {
        session.resume(chat, label, &mut NoBlocks, &NEVER, &mut |_| {});
        read(&mut session, chat);
    }
    let room = session.parked.bytes();
    session.set_spare_memory(Box::new(move |_, _| room));
    let mut blocks = Blocks::default();
    store_all(&mut session, &mut blocks);
    assert_eq!(blocks.stored.len(), 2 + 5);
    assert_eq!(
        (session.tokens(), session.parked.bytes()),
        (&second[..], room)
    );
    // One that has no room does not push the others out.
    session.resume(&[7], 3, &mut NoBlocks, &NEVER, &mut |_| {});
    assert_eq!(session.parked.bytes(), room);
}

#[test]
fn nothing_of_a_chat_that_is_erased_stays_in_memory() {
    let chat = tokens(1, 300);
    let mut session = Model::usual().session();
    session.resume(&chat, 1, &mut NoBlocks, &NEVER, &mut |_| {});
    read(&mut session, &chat);
    session.retain(|label| label == 1);
    assert_eq!(session.tokens(), chat);
    session.retain(|label| label == 2);
    assert_eq!((session.tokens().len(), session.kv_bytes()), (0, 0));
    assert!(!session.store_block(&mut Blocks::default()).expect("memory"));
}
