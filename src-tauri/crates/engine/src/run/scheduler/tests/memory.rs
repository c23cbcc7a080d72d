//! Requests without room in memory, and sequences of conversations that are deleted or moved.

use super::*;
use crate::model::evaluate::{Cache, Evaluate, PassSlot, cache_of, one_by_one};
use crate::model::external::Tokens;
use crate::run::scripted::Scripted;

/// A scripted model with room for this number of sequences.
struct Crowded {
    model: Scripted,
    sequences: Arc<AtomicUsize>,
    room: Arc<AtomicUsize>,
    /// True once the device is lost.
    lost: Arc<AtomicBool>,
}

struct CountedTokens(Tokens, Arc<AtomicUsize>);

impl Drop for CountedTokens {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Cache for CountedTokens {
    fn positions(&self) -> usize {
        self.0.positions()
    }

    fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    fn bytes(&self) -> usize {
        0
    }
}

impl Evaluate for Crowded {
    fn new_cache(&mut self) -> Result<Box<dyn Cache>, DeviceError> {
        self.sequences.fetch_add(1, Ordering::Relaxed);
        let tokens = Tokens(Vec::new());
        Ok(Box::new(CountedTokens(tokens, Arc::clone(&self.sequences))))
    }

    fn forward(
        &mut self,
        slots: &mut [PassSlot<'_>],
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<Pass, DeviceError> {
        if self.lost.load(Ordering::Relaxed) {
            return Err(DeviceError::Failed("the device is lost".to_owned()));
        }
        if self.sequences.load(Ordering::Relaxed) > self.room.load(Ordering::Relaxed) {
            return Err(DeviceError::OutOfMemory("another sequence".to_owned()));
        }
        one_by_one(slots, logits, |slot, logits| {
            let CountedTokens(tokens, _) = cache_of(slot.cache)?;
            let (ids, want) = (slot.ids, slot.want);
            let cache = &mut *tokens;
            let mut slot = [PassSlot { cache, ids, want }];
            self.model.forward(&mut slot, cancel, logits)
        })
    }

    fn chunk(&self) -> usize {
        self.model.chunk()
    }
}

/// A scripted model. The next token depends on all tokens before it.
fn scripted() -> Scripted {
    let vocab = tokenizer().vocabulary_size();
    let logits = move |tokens: &[u32]| {
        let mut logits = vec![0.0; vocab];
        logits[tokens.iter().sum::<u32>() as usize % 500] = 80.0;
        logits
    };
    Scripted::new(logits, |_| {})
}

/// A session with room for `room` sequences.
fn crowded(room: &Arc<AtomicUsize>) -> Session {
    even(Session::new(Box::new(Crowded {
        model: scripted(),
        sequences: Arc::default(),
        room: Arc::clone(room),
        lost: Arc::default(),
    })))
}

#[test]
fn all_answers_go_on_after_a_failover_which_frees_their_caches_first() {
    let (sequences, lost) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
    let model = Crowded {
        model: scripted(),
        sequences: Arc::clone(&sequences),
        room: Arc::new(AtomicUsize::new(9)),
        lost: Arc::clone(&lost),
    };
    let reload = Box::new(move || {
        assert_eq!(sequences.load(Ordering::Relaxed), 0, "caches of the device");
        Ok(Box::new(scripted()) as Box<dyn Evaluate>)
    });
    let (prompts, params) = (prompts(), params(1, 0.0, 15));
    let requests = prompts[..3].iter().map(|prompt| request(prompt, &params));
    let alone: Vec<_> = requests
        .clone()
        .map(|request| ScheduledRun::new(Session::new(Box::new(scripted())), 4096).run(request))
        .collect();
    let requests = requests.map(|request| (0, request));
    let session = even(Session::with_failover(Box::new(model), reload));
    let together = run(session, 4096, requests.collect(), |step| {
        lost.store(step >= 8, Ordering::Relaxed);
    });
    for (alone, together) in alone.iter().zip(&together) {
        assert_eq!(alone.ids, together.ids);
        assert_eq!(alone.reason, together.reason);
    }
}

#[test]
fn an_answer_can_be_cancelled_while_it_is_read_again_after_a_failover() {
    let lost = Arc::<AtomicBool>::default();
    let model = Crowded {
        model: scripted(),
        sequences: Arc::default(),
        room: Arc::new(AtomicUsize::new(9)),
        lost: Arc::clone(&lost),
    };
    let request = request(&Prompt::of_ids(vec![2; 300]), &params(1, 0.0, 30));
    let cancel = Arc::clone(&request.signals.cancel);
    let passes = Arc::<AtomicUsize>::default();
    let read_again = Arc::clone(&passes);
    let reload = Box::new(move || {
        let (cancel, passes) = (Arc::clone(&cancel), Arc::clone(&read_again));
        let on_pass = move |_| {
            passes.fetch_add(1, Ordering::Relaxed);
            cancel.store(true, Ordering::Relaxed);
        };
        let vocab = tokenizer().vocabulary_size();
        let model = Scripted::new(move |_| vec![0.0; vocab], on_pass);
        Ok(Box::new(model) as Box<dyn Evaluate>)
    });
    let session = even(Session::with_failover(Box::new(model), reload));
    let mut run = ScheduledRun::new(session, 4096);
    let at = run.submit(request);
    while run.written[at].ids.len() < 5 {
        run.step();
    }
    lost.store(true, Ordering::Relaxed);
    run.finish();
    assert_eq!(run.written[at].reason, Some(Ok(StopReason::Cancelled)));
    assert_eq!(passes.load(Ordering::Relaxed), 1, "of five");
}

#[test]
fn a_request_without_room_waits_until_the_others_end() {
    let (prompts, params) = (prompts(), vec![params(1, 0.0, 15); 5]);
    for room in [1, 2] {
        let crowded = || crowded(&Arc::new(AtomicUsize::new(room)));
        let all = || prompts.iter().zip(&params);
        let alone = all().map(|(prompt, params)| {
            ScheduledRun::new(crowded(), 4096).run(request(prompt, params))
        });
        let requests = all().map(|(prompt, params)| (0, request(prompt, params)));
        let together = run(crowded(), 4096, requests.collect(), |_| {});
        for (alone, together) in alone.zip(&together) {
            assert_eq!(alone.ids, together.ids);
            assert_eq!(together.reason, Some(Ok(StopReason::MaxTokens)));
        }
    }
}

#[test]
fn an_answer_begins_beside_another_once_memory_has_room_for_both() {
    let mut run = ScheduledRun::new(session(), 4096);
    run.scheduler
        .set_memory_check(Box::new(|tokens| tokens <= 24));
    let prompts = prompts();
    // Prompts of 3 tokens, and one of 4: two fit, and a third one once the first has written some.
    for prompt in &prompts[..3] {
        run.submit(request(prompt, &params(1, 0.0, 9)));
    }
    run.step();
    assert_eq!(run.scheduler.active.len(), 2);
    run.finish();
    let [first, second, third] = [0, 1, 2].map(|at| run.written[at].steps[0]);
    assert!(third > second, "{first} {second} {third}");
    assert!(third < *run.written[0].steps.last().expect("tokens"));
}

#[test]
fn a_paused_answer_goes_on_as_soon_as_another_one_ends() {
    let room = Arc::new(AtomicUsize::new(3));
    let mut run = ScheduledRun::new(crowded(&room), 4096);
    let (prompts, lengths) = (prompts(), [60, 12, 20]);
    let requests = prompts.iter().zip(lengths);
    let requests = requests.map(|(prompt, length)| request(prompt, &params(1, 0.0, length)));
    let alone: Vec<_> = requests
        .clone()
        .map(|request| ScheduledRun::new(crowded(&room), 4096).run(request))
        .collect();
    for request in requests {
        run.submit(request);
    }
    while run.written[2].ids.len() < 3 {
        run.step();
    }
    room.store(2, Ordering::Relaxed);
    while run.written[1].reason.is_none() {
        run.step();
    }
    assert_eq!(run.scheduler.paused.len(), 1);
    run.finish();
    for (alone, together) in alone.iter().zip(&run.written) {
        assert_eq!(alone.ids, together.ids);
    }
    let last = |at: usize| run.written[at].steps.last();
    assert!(last(2) < last(0), "it does not wait for the longest");
}

#[test]
fn the_newest_answer_is_paused_when_memory_runs_short_meanwhile() {
    let (prompts, params) = (prompts(), params(1, 0.0, 150));
    let alone: Vec<_> = prompts[..2]
        .iter()
        .map(|prompt| run_alone(request(prompt, &params)))
        .collect();
    let mut run = ScheduledRun::new(session(), 4096);
    let is_short = Arc::new(AtomicBool::new(false));
    let checked = Arc::clone(&is_short);
    run.scheduler
        .set_memory_check(Box::new(move |_| !checked.load(Ordering::Relaxed)));
    for prompt in &prompts[..2] {
        run.submit(request(prompt, &params));
    }
    while run.written[1].ids.len() < 20 {
        run.step();
    }
    is_short.store(true, Ordering::Relaxed);
    while run.scheduler.active.len() == 2 {
        run.step();
    }
    assert!(run.written[0].ids.len() > 100, "at the next segment");
    assert_eq!(run.scheduler.paused[0].sequence.bytes(), 0);
    run.finish();
    assert_eq!(run.written[0].ids, alone[0].ids);
    // Decoded tokens that are read again are rounded as those of a prompt.
    assert_eq!(run.written[1].ids.len(), 150);
    assert!(run.written[1].steps.last() > run.written[0].steps.last());
}

#[test]
fn what_an_answer_goes_on_from_is_not_freed_for_it() {
    let chats = [2, 3, 4].map(|id| Prompt::of_ids(vec![id; 100]));
    let mut session = session();
    session.set_spare_memory(Box::new(|_, _| 1 << 30));
    let mut run = ScheduledRun::new(session, 4096);
    for prompt in &chats[..2] {
        run.run(request(prompt, &params(1, 0.0, 3)));
    }
    let writes = run.submit(request(&chats[2], &params(1, 0.0, 40)));
    while run.written[writes].ids.is_empty() {
        run.step();
    }
    // Room for two answers, but not for a prompt, once the other conversation is freed.
    let calls = AtomicUsize::new(0);
    run.scheduler.set_memory_check(Box::new(move |tokens| {
        calls.fetch_add(1, Ordering::Relaxed) > 0 && tokens <= 100
    }));
    let next = Prompt::of_ids([&chats[0].ids[..], &[7; 5]].concat());
    let next = run.submit(request(&next, &params(1, 0.0, 30)));
    run.step();
    assert_eq!(run.scheduler.active.len(), 2);
    assert_eq!(run.scheduler.session.sequences().count(), 0);
    run.finish();
    assert_eq!(run.written[next].stats.cached_tokens, 100);
}

#[test]
fn answers_of_any_length_are_written_together() {
    let mut run = ScheduledRun::new(session(), 4096);
    run.scheduler
        .set_memory_check(Box::new(|tokens| tokens <= 3000));
    for prompt in &prompts()[..2] {
        run.submit(request(prompt, &params(1, 0.0, usize::MAX)));
    }
    run.step();
    assert_eq!(run.scheduler.active.len(), 2);
}

#[test]
fn a_request_that_waits_for_memory_can_be_cancelled() {
    let room = Arc::new(AtomicUsize::new(2));
    let mut run = ScheduledRun::new(crowded(&room), 4096);
    let (prompts, params) = (prompts(), params(1, 0.0, 15));
    run.submit(request(&prompts[0], &params));
    let second = request(&prompts[1], &params);
    let cancel = Arc::clone(&second.signals.cancel);
    let second = run.submit(second);
    while run.written[second].ids.len() < 3 {
        run.step();
    }
    room.store(1, Ordering::Relaxed);
    while run.scheduler.paused.is_empty() {
        run.step();
    }
    cancel.store(true, Ordering::Relaxed);
    run.step();
    assert_eq!(run.written[second].reason, Some(Ok(StopReason::Cancelled)));
    let tokens = run.written[second].ids.len();
    assert_eq!(run.written[second].stats.tokens, tokens);
    assert_eq!(run.written[0].reason, None);
}

/// Runs answers of the conversations 5 and 6, and calls `between` while they are written. Returns the sequences in memory
/// afterwards.
fn sequences_after(between: impl FnOnce(&mut Scheduler)) -> (Vec<Vec<u32>>, [Prompt; 2]) {
    let mut session = session();
    session.set_spare_memory(Box::new(|_, _| 1 << 30));
    let mut run = ScheduledRun::new(session, 4096);
    let prompts = [2, 3].map(|id| Prompt::of_ids(vec![id; 100]));
    for (prompt, conversation) in prompts.iter().zip(5..) {
        run.submit(ModelRequest {
            conversation,
            ..request(prompt, &params(1, 0.0, 10))
        });
    }
    while run.written.iter().any(|it| it.ids.is_empty()) {
        run.step();
    }
    between(&mut run.scheduler);
    run.finish();
    assert!(run.written.iter().all(|it| it.ids.len() == 10));
    (run.sequences(), prompts)
}

#[test]
fn nothing_of_a_conversation_that_is_deleted_meanwhile_stays_in_memory() {
    let (kept, prompts) = sequences_after(|_| {});
    assert_eq!(kept.len(), prompts.len());
    let (kept, prompts) = sequences_after(|scheduler| scheduler.retain(|label| label != 5));
    assert_eq!(kept.len(), 1);
    assert!(kept[0].starts_with(&prompts[1].ids));
    let (kept, _) = sequences_after(|scheduler| scheduler.retain(|_| false));
    assert_eq!(kept, Vec::<Vec<u32>>::new());
}

#[test]
fn a_conversation_that_is_moved_meanwhile_is_kept_under_its_other_label() {
    let (kept, prompts) = sequences_after(|scheduler| {
        scheduler.relabel(5, 7);
        scheduler.retain(|label| label == 7);
    });
    assert_eq!(kept.len(), 1);
    assert!(kept[0].starts_with(&prompts[0].ids));
}

#[test]
fn a_request_that_waits_moves_with_its_conversation() {
    let mut run = ScheduledRun::new(session(), 4096);
    let prompt = Prompt::of_ids(vec![2; 100]);
    run.submit(ModelRequest {
        conversation: 5,
        ..request(&prompt, &params(1, 0.0, 10))
    });
    run.scheduler.relabel(5, 7);
    run.finish();
    run.scheduler.retain(|label| label == 7);
    assert_eq!(run.sequences().len(), 1);
}
