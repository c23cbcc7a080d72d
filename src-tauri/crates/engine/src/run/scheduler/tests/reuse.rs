//! Prompts with a beginning that is in memory or stored.

use super::*;
use crate::run::kv_blocks::in_memory::BLOCK;
use crate::run::sequence::NEGLIGIBLE;

/// A prompt of arbitrary tokens.
fn arbitrary(seed: u32, count: u32) -> Prompt {
    Prompt::of_ids((0..count).map(|at| (at * 37 + seed * 101) % 500).collect())
}

/// A prompt, its stored blocks, and the answer of a run that has it in memory.
fn stored() -> (Prompt, Blocks, WrittenAnswer) {
    let prompt = arbitrary(1, 10 * BLOCK as u32);
    let mut run = ScheduledRun::new(session(), 4096);
    run.run(request(&prompt, &params(1, 0.0, 1)));
    let (session, blocks) = (&mut run.scheduler.session, &mut run.blocks);
    while session.store_block(blocks).expect("memory") {}
    let answer = run.run(request(&prompt, &params(1, 0.0, 10)));
    assert_eq!(answer.stats.cached_tokens, prompt.ids.len() - 1);
    (prompt, run.blocks, answer)
}

#[test]
fn stored_blocks_of_a_request_alone_are_restored_at_once() {
    let (prompt, blocks, expected) = stored();
    let mut run = ScheduledRun::new(session(), 4096);
    run.blocks = blocks;
    let answer = run.run(request(&prompt, &params(1, 0.0, 10)));
    let restored = 9 * BLOCK;
    assert_eq!(answer.stats.cached_tokens, restored);
    let at_once: Vec<_> = (1..10).map(|block| (0, block * BLOCK)).collect();
    assert_eq!(answer.read[..9], at_once);
    assert_eq!(answer.ids.len(), expected.ids.len());
}

#[test]
fn stored_blocks_are_restored_between_the_tokens_of_another_answer() {
    let (prompt, blocks, _) = stored();
    let mut run = ScheduledRun::new(session(), 4096);
    run.blocks = blocks;
    let other = run.submit(request(&arbitrary(2, 5), &params(1, 0.0, 80)));
    for _ in 0..5 {
        run.step();
    }
    let at = run.submit(request(&prompt, &params(1, 0.0, 10)));
    run.finish();
    let restored = [4, 4, 1].into_iter().zip(5..);
    let restored = restored.flat_map(|(blocks, step)| std::iter::repeat_n(step, blocks));
    let restored: Vec<_> = restored.zip((1..10).map(|block| block * BLOCK)).collect();
    assert_eq!(run.written[at].read[..9], restored);
    assert_eq!(run.written[at].stats.cached_tokens, 9 * BLOCK);
    let steps: Vec<usize> = (1..=20).collect();
    assert_eq!(
        run.written[other].steps[..20],
        steps,
        "a token in every step"
    );
}

#[test]
fn a_request_can_be_cancelled_and_preempted_while_its_blocks_are_restored() {
    let (prompt, blocks, expected) = stored();
    for is_cancelled in [true, false] {
        let mut run = ScheduledRun::new(session(), 4096);
        run.blocks = Blocks {
            stored: blocks.stored.clone(),
            ..Blocks::default()
        };
        let request = request(&prompt, &params(1, 0.0, 10));
        let cancel = Arc::clone(&request.signals.cancel);
        cancel.store(is_cancelled, Ordering::Relaxed);
        run.preempt.store(!is_cancelled, Ordering::Relaxed);
        // A request that was cancelled before it began is never restored.
        let at = run.submit(request);
        run.step();
        assert_eq!(run.written[at].read, []);
        run.preempt.store(false, Ordering::Relaxed);
        run.finish();
        let (reason, tokens) = match is_cancelled {
            true => (StopReason::Cancelled, 0),
            false => (StopReason::MaxTokens, expected.ids.len()),
        };
        assert_eq!(run.written[at].reason, Some(Ok(reason)));
        assert_eq!(run.written[at].ids.len(), tokens);
    }
}

#[test]
fn the_common_beginning_of_two_prompts_is_read_once() {
    let common = arbitrary(1, 200).ids;
    let [first, second] = [3, 4].map(|id| Prompt::of_ids([&common[..], &[id; 5]].concat()));
    let mut alone = ScheduledRun::new(session(), 4096);
    alone.run(request(&first, &params(1, 0.0, 1)));
    let expected = alone.run(request(&second, &params(1, 0.0, 10)));

    let mut run = ScheduledRun::new(session(), 4096);
    let writes = run.submit(request(&first, &params(1, 0.0, 60)));
    while run.written[writes].ids.len() < 3 {
        run.step();
    }
    let shares = run.submit(request(&second, &params(1, 0.0, 10)));
    run.finish();
    let shares = &run.written[shares];
    assert_eq!(shares.stats.cached_tokens, 200);
    assert_eq!(shares.ids, expected.ids);
    let undisturbed = run_alone(request(&first, &params(1, 0.0, 60)));
    assert_eq!(run.written[writes].ids, undisturbed.ids);
}

#[test]
fn a_beginning_that_two_requests_share_is_read_once() {
    let shared = arbitrary(3, 500);
    let with = |end: &[u32]| Prompt::of_ids([&shared.ids[..], end].concat());
    let mut run = ScheduledRun::new(session(), 4096);
    let first = run.submit(request(&with(&[1, 2, 3]), &params(1, 0.0, 20)));
    let second = run.submit(request(&with(&[4, 5]), &params(1, 0.0, 20)));
    let other = run.submit(request(&arbitrary(4, 20), &params(1, 0.0, 20)));
    run.finish();
    assert_eq!(run.written[first].stats.cached_tokens, 0);
    // The last few are not worth the wait.
    assert!(run.written[second].stats.cached_tokens >= 500 - NEGLIGIBLE);
    assert_eq!(run.written[other].ids.len(), 20);
}

#[test]
fn a_program_reuses_only_what_programs_have_sent() {
    let api = |prompt: &Prompt| ModelRequest {
        priority: Priority::Api,
        conversation: 9,
        ..request(prompt, &params(1, 0.0, 3))
    };
    let mut session = session();
    session.set_spare_memory(Box::new(|_, _| 1 << 30));
    let mut run = ScheduledRun::new(session, 4096);
    let secret = arbitrary(5, 200);
    run.run(request(&secret, &params(1, 0.0, 3)));
    // Its figures would say how far an attempt is right.
    assert_eq!(run.run(api(&secret)).stats.cached_tokens, 0);
    assert_eq!(run.run(api(&secret)).stats.cached_tokens, 199);
    let chat = run.submit(request(&arbitrary(6, 200), &params(1, 0.0, 40)));
    while run.written[chat].ids.is_empty() {
        run.step();
    }
    let attempt = run.submit(api(&arbitrary(6, 200)));
    run.finish();
    assert_eq!(run.written[attempt].stats.cached_tokens, 0);
}
