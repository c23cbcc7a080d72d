//! Sequences restored from memory or from blocks give the logits of a cold run, within rounding.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use kernels::{Cpu, CpuLevel, KvType};

use super::*;
use crate::gguf::Gguf;
use crate::model::config::Config;
use crate::model::forward::CpuModel;
use crate::model::weights;
use crate::run::kv_blocks::in_memory::{BLOCK, Blocks};
use crate::run::session::tests::{ROUNDING, assert_close, tokens};

mod reading_ahead;

static NEVER: AtomicBool = AtomicBool::new(false);
static ALWAYS: AtomicBool = AtomicBool::new(true);

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

    fn chats(self) -> Chats {
        let path = format!("tests/fixtures/{}.gguf", self.file);
        let gguf = Gguf::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("there");
        let config = Config::from_gguf(&gguf).expect("a SmolLM3 file");
        let config = config.for_context(self.context);
        let cpu = Cpu::new(2, self.level);
        let weights = weights::load(&cpu, &gguf, &config, &mut |_| {}).expect("its weights");
        let model = CpuModel::new(config, cpu, weights, self.kv, self.chunk).expect("memory");
        Chats {
            session: Session::new(Box::new(model.with_block(BLOCK.min(self.chunk)))),
            label: 7,
        }
    }
}

/// A session whose sequences are parked after each turn.
struct Chats {
    session: Session,
    /// Label of the next turn.
    label: u64,
}

impl Chats {
    /// Keeps parked sequences within this number of bytes.
    fn with_budget(mut self, bytes: u64) -> Chats {
        self.session.set_spare_memory(Box::new(move |_, _| bytes));
        self
    }

    /// Takes the sequence of a prompt, restores the stored blocks, and parks it. Returns the progress.
    fn restore(&mut self, prompt: &[u32], blocks: &mut Blocks) -> Vec<usize> {
        let mut progress = Vec::new();
        let mut sequence = self.session.take(prompt, self.label, None, [].into_iter());
        let (mut on, mut note) = (|| true, |done| progress.push(done));
        let more = self
            .session
            .restore(&mut sequence, prompt, blocks, &mut on, &mut note);
        assert!(!more);
        self.session.park(sequence);
        progress
    }

    /// Runs a turn: a prompt, and an answer that is decoded. Returns the logits after the prompt, and how much of it was
    /// in the cache.
    fn converse(&mut self, prompt: &[u32], answer: &[u32]) -> (Vec<f32>, usize) {
        let session = &mut self.session;
        let mut sequence = session.take(prompt, self.label, None, [].into_iter());
        let mut cached = None;
        let pass = session.prefill(&mut sequence, prompt, &NEVER, &mut |done| {
            cached.get_or_insert(done);
        });
        assert_eq!(pass.expect("no failure"), Pass::Complete);
        let logits = session.logits(0).to_vec();
        for id in answer {
            let pass = session.step(&mut sequence, *id, &[], &NEVER);
            assert_eq!(pass.expect("no failure"), Pass::Complete);
        }
        session.park(sequence);
        (logits, cached.expect("progress"))
    }

    fn read(&mut self, prompt: &[u32]) -> (Vec<f32>, usize) {
        self.converse(prompt, &[])
    }

    /// Reads a prompt, as a conversation of its own.
    fn read_as(&mut self, label: u64, prompt: &[u32]) {
        self.label = label;
        self.read(prompt);
    }

    /// Reads a block of a prompt ahead, of which the first `sent` tokens are sent. Returns true if there is more.
    fn read_block_ahead(&mut self, prompt: &[u32], sent: usize, cancel: &AtomicBool) -> bool {
        let session = &mut self.session;
        let mut sequence = session.take(prompt, self.label, None, [].into_iter());
        let more = session.read_ahead(&mut sequence, prompt, sent, cancel);
        session.park(sequence);
        more.expect("no failure")
    }

    /// Reads all of a prompt ahead.
    fn read_ahead(&mut self, prompt: &[u32], sent: usize) {
        while self.read_block_ahead(prompt, sent, &NEVER) {}
    }

    fn store_all(&mut self, blocks: &mut Blocks) {
        let mut steps = 0;
        while self.session.store_block(blocks).expect("memory") {
            steps += 1;
            assert!(steps < 100, "it comes to an end");
        }
    }

    /// The tokens of the sequence that was used last.
    fn tokens(&self) -> &[u32] {
        self.session.sequences().next().unwrap_or_default()
    }

    /// The tokens of all sequences, the most recently used first.
    fn sequences(&self) -> Vec<&[u32]> {
        self.session.sequences().collect()
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
                let (mut chats, mut blocks) = (model.chats(), Blocks::default());
                let (logits, _) = chats.read(&tokens(1, 500));
                chats.store_all(&mut blocks);
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
        let mut warm = model.chats().with_budget(1 << 30);
        warm.converse(&chat[..140], &chat[140..250]);
        warm.converse(&chat[..300], &chat[300..]);
        let mut blocks = Blocks::default();
        warm.store_all(&mut blocks);
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
            let (cold, _) = model.chats().read(&prompt);
            let (in_memory, cached) = warm.read(&prompt);
            assert_eq!(cached, common);
            let mut again = model.chats();
            again.restore(&prompt, &mut blocks);
            let (restored, cached) = again.read(&prompt);
            assert_eq!(cached, common / BLOCK * BLOCK, "{common} and {more}");
            assert_close(&in_memory, &cold, BOUND);
            assert_close(&restored, &cold, BOUND);
            if cached == common {
                assert!(restored == in_memory, "{common} and {more}: other bits");
            }
        }
        // Exactly this prompt: the last token is evaluated for its logits.
        let mut again = model.chats();
        again.restore(&chat[..384], &mut blocks);
        assert_eq!(again.read(&chat[..384]).1, 256);
    }
}

#[test]
fn blocks_that_are_missing_or_of_another_length_are_evaluated() {
    let chat = tokens(1, 400);
    let mut blocks = Blocks::default();
    let mut chats = Model::usual().chats();
    chats.read(&chat);
    chats.store_all(&mut blocks);
    let (cold, _) = Model::usual().chats().read(&chat);
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
            let mut again = Model::usual().chats();
            again.restore(&chat, &mut blocks);
            assert!(again.read(&chat) == (cold.clone(), cached));
        }
        let mut missing = Blocks {
            stored: blocks.stored.clone(),
            ..Blocks::default()
        };
        missing.stored.remove(&chat[..at * BLOCK]);
        let mut again = Model::usual().chats();
        again.restore(&chat, &mut missing);
        assert!(again.read(&chat) == (cold.clone(), cached));
    }
}

#[test]
fn a_full_disk_ends_storing_until_space_is_free_again() {
    let chat = tokens(1, 300);
    let mut chats = Model::usual().chats();
    chats.read(&chat);
    let mut blocks = Blocks {
        full: true,
        ..Blocks::default()
    };
    chats.store_all(&mut blocks);
    assert!(blocks.stored.is_empty());
    blocks.full = false;
    chats.store_all(&mut blocks);
    assert_eq!(blocks.stored.len(), 2);
    let (_, cached) = chats.read(&[&chat[..], &[5]].concat());
    assert_eq!(cached, 300, "the rest stays in memory");
}

#[test]
fn a_block_of_which_tokens_were_replaced_is_stored_again() {
    let (chat, other) = (tokens(1, 300), tokens(2, 100));
    let mut chats = Model::usual().chats();
    let mut blocks = Blocks::default();
    chats.read(&chat);
    chats.store_all(&mut blocks);
    let branch = [&chat[..200], &other].concat();
    chats.read(&branch);
    chats.store_all(&mut blocks);
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
        let mut chats = Model::usual().chats().with_budget(bytes);
        chats.read_as(1, &first);
        chats.read_as(2, &second);
        chats
    };
    let next = |chat: &[u32]| [chat, &[9]].concat();
    let mut chats = budget(1 << 30);
    for chat in [&first, &second, &first] {
        assert_eq!(chats.read(&next(chat)).1, 300);
    }
    let mut chats = budget(1000);
    assert_eq!(chats.read(&next(&first)).1, 0, "it had no room");
    // The sequence of an erased chat is removed.
    let mut chats = budget(1 << 30);
    chats.session.retain(|label| label == 2);
    assert_eq!(chats.read(&next(&first)).1, 0);
    // A chat that was parked before it was stored is stored as well, under its own label.
    let mut chats = budget(1 << 30);
    let mut blocks = Blocks::default();
    chats.store_all(&mut blocks);
    blocks.labels.sort_unstable();
    assert_eq!(blocks.labels, [(1, 128), (1, 256), (2, 128), (2, 256)]);
}

#[test]
fn another_branch_shares_what_is_common_and_leaves_the_first_as_it_is() {
    let (common, first, second) = (tokens(1, 150), tokens(2, 150), tokens(3, 150));
    let branch = |rest: &[u32]| [&common[..], rest].concat();
    let mut chats = Model::usual().chats().with_budget(1 << 30);
    let before = chats.read(&branch(&first)).0;
    assert_eq!(chats.read(&branch(&second)).1, 150);
    let (after, cached) = chats.read(&branch(&first));
    assert_eq!(cached, 299);
    // The last token in a pass of its own differs in the last bits; an overwritten one differs entirely.
    assert_close(&after, &before, ROUNDING);
}

#[test]
fn blocks_are_restored_with_progress_and_as_long_as_the_caller_goes_on() {
    let chat = tokens(1, 400);
    let mut blocks = Blocks::default();
    let mut chats = Model::usual().chats();
    chats.read(&chat);
    chats.store_all(&mut blocks);
    let progress = Model::usual().chats().restore(&chat, &mut blocks);
    assert_eq!(progress, [128, 256, 384]);
    let mut chats = Model::usual().chats();
    chats.read(&tokens(2, 700));
    let mut sequence = chats.session.take(&chat, 7, None, [].into_iter());
    assert_eq!(chats.sequences(), [&[0; 0]; 0], "the cache before is freed");
    assert_eq!(sequence.bytes(), 0);
    for (blocks_left, tokens) in [(0, 0), (1, 128), (0, 128), (2, 384)] {
        let mut left = blocks_left;
        let mut goes_on = || {
            left -= 1;
            left >= 0
        };
        let session = &mut chats.session;
        let more = session.restore(&mut sequence, &chat, &mut blocks, &mut goes_on, &mut |_| {});
        assert_eq!((more, sequence.tokens()), (tokens < 384, &chat[..tokens]));
    }
}

#[test]
fn a_chat_that_is_not_to_be_stored_is_passed_over_and_holds_up_no_other() {
    let (first, second) = (tokens(1, 300), tokens(2, 300));
    for secret in [1, 2] {
        let mut chats = Model::usual().chats().with_budget(1 << 30);
        chats.read_as(1, &first);
        chats.read_as(2, &second);
        let mut blocks = Blocks {
            secret: Some(secret),
            ..Blocks::default()
        };
        chats.store_all(&mut blocks);
        let other = 3 - secret;
        assert_eq!(blocks.labels, [(other, 128), (other, 256)]);
    }
}

#[test]
fn what_was_read_of_a_chat_goes_with_it_under_another_label() {
    let (first, second) = (tokens(1, 300), tokens(2, 300));
    let mut chats = Model::usual().chats().with_budget(1 << 30);
    let mut blocks = Blocks {
        secret: Some(9),
        ..Blocks::default()
    };
    chats.read_as(1, &first);
    chats.read_as(2, &second);
    for label in [1, 2] {
        chats.session.relabel(label, 9);
        chats.session.retain(|of| of != label);
    }
    chats.store_all(&mut blocks);
    assert_eq!(blocks.labels, [], "none of it is stored");
    assert_eq!(chats.sequences(), [&second[..], &first[..]]);
    chats.session.relabel(9, 1);
    chats.store_all(&mut blocks);
    assert_eq!(blocks.stored.len(), 4, "all of both is stored from now on");
}

#[test]
fn all_parked_chats_are_stored_and_one_without_room_does_not_evict_others() {
    let (first, second) = (tokens(1, 300), tokens(2, 700));
    let mut chats = Model::usual().chats().with_budget(1 << 30);
    chats.read_as(1, &first);
    chats.read_as(2, &second);
    let mut blocks = Blocks::default();
    chats.store_all(&mut blocks);
    assert_eq!(blocks.stored.len(), 2 + 5);
    assert_eq!(chats.sequences(), [&second[..], &first[..]]);
    let first_alone = {
        let mut chats = Model::usual().chats();
        chats.read_as(1, &first);
        chats.session.parked.bytes()
    };
    let mut chats = chats.with_budget(first_alone);
    chats.read_as(3, &[7]);
    assert_eq!(chats.sequences(), [&[7], &first[..]]);
}

#[test]
fn nothing_of_a_chat_that_is_erased_stays_in_memory() {
    let chat = tokens(1, 300);
    let mut chats = Model::usual().chats();
    chats.read_as(1, &chat);
    chats.session.retain(|label| label == 1);
    assert_eq!(chats.tokens(), chat);
    chats.session.retain(|label| label == 2);
    assert_eq!(chats.sequences(), [&[0; 0]; 0]);
    chats.store_all(&mut Blocks::default());
}
