//! Requests that are cancelled before their answer is whole.

use super::*;

#[test]
fn a_cancelled_request_ends_though_it_was_never_admitted() {
    let (prompts, params) = (prompts(), params(1, 0.0, 20));
    let mut run = ScheduledRun::new(session(), 4096);
    for prompt in &prompts[..8] {
        run.submit(request(prompt, &params));
    }
    let waits = request(&prompts[8], &params);
    let cancel = Arc::clone(&waits.signals.cancel);
    let at = run.submit(waits);
    run.step();
    assert_eq!(run.written[at].reason, None);
    cancel.store(true, Ordering::Relaxed);
    run.step();
    assert_eq!(run.written[at].reason, Some(Ok(StopReason::Cancelled)));
    assert_eq!(run.written[at].stats.prompt_tokens, prompts[8].ids.len());
    assert!(run.written[..8].iter().all(|it| it.reason.is_none()));
}

#[test]
fn a_request_that_is_cancelled_in_a_preempted_pass_needs_no_other() {
    let (prompts, params) = (prompts(), params(1, 0.0, 20));
    let mut run = ScheduledRun::new(session(), 4096);
    let requests = prompts[..2].iter().map(|prompt| request(prompt, &params));
    let cancels = requests.map(|request| {
        let cancel = Arc::clone(&request.signals.cancel);
        run.submit(request);
        cancel
    });
    let cancels: Vec<_> = cancels.collect();
    while run.written.iter().any(|it| it.ids.is_empty()) {
        run.step();
    }
    run.preempt.store(true, Ordering::Relaxed);
    run.step();
    cancels[0].store(true, Ordering::Relaxed);
    run.step();
    assert_eq!(run.written[0].reason, Some(Ok(StopReason::Cancelled)));
    assert_eq!(run.written[1].reason, None);
}

#[test]
fn a_prompt_without_room_is_refused() {
    let params = params(1, 0.0, 20);
    let mut run = ScheduledRun::new(session(), 8);
    for (ids, refused) in [
        (vec![], "the prompt is empty"),
        (
            vec![1; 8],
            "the conversation is too long: 8 tokens in a context of 8",
        ),
    ] {
        let submitted = run.scheduler.submit(request(&Prompt::of_ids(ids), &params));
        assert_eq!(submitted.expect_err("no room").to_string(), refused);
    }
    assert!(!run.scheduler.is_busy());
}
