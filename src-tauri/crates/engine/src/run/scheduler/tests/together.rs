//! Answers that are written together.

use super::*;
use crate::run::scripted::Scripted;

#[test]
fn answers_written_together_are_those_of_runs_alone() {
    let prompts = prompts();
    let params: Vec<_> = (0..10)
        .map(|at| params(at, 0.8 * (at % 3) as f32, 12 + at as usize))
        .collect();
    let alone = run_each_alone(&prompts, &params);
    for apart in [0, 1, 3] {
        let requests = prompts.iter().zip(&params).enumerate();
        let requests = requests.map(|(at, (prompt, params))| (at * apart, request(prompt, params)));
        let together = run(session(), 4096, requests.collect(), |_| {});
        for (alone, together) in alone.iter().zip(&together) {
            assert_eq!(alone.ids, together.ids, "{apart}");
            assert_eq!(alone.reason, together.reason, "{apart}");
            let are_shared = (alone.stats.shared, together.stats.shared);
            assert_eq!(are_shared, (false, true), "{apart}");
        }
        // At most eight have a sequence.
        if apart == 0 {
            let first_end = together.iter().filter_map(|it| it.steps.last()).min();
            assert!(together[8].steps.first() > first_end, "{together:?}");
        }
    }
}

#[test]
fn a_request_that_ends_early_leaves_the_others_as_they_are() {
    let (prompts, mut params) = (prompts(), vec![params(1, 0.0, 20); 10]);
    params[5].max_tokens = None;
    let alone = run_each_alone(&prompts[..3], &params[..3]);
    let unknown = Prompt::of_ids(vec![1, u32::MAX]);
    let long = Prompt::of_ids((0..35).map(|at| at * 7 % 500).collect());
    let stopped = request(&prompts[3], &params[4]);
    let stop = Arc::clone(&stopped.signals.cancel);
    let requests = vec![
        (0, request(&unknown, &params[3])),
        (0, request(&prompts[0], &params[0])),
        (0, request(&prompts[1], &params[1])),
        (2, stopped),
        (3, request(&prompts[2], &params[2])),
        (3, request(&long, &params[5])),
        (5, request(&unknown, &params[3])),
    ];
    let together = run(session(), 40, requests, |step| {
        stop.store(step >= 9, Ordering::Relaxed);
    });
    for (alone, at) in alone.iter().zip([1, 2, 4]) {
        assert_eq!(alone.ids, together[at].ids, "{at}");
        assert_eq!(alone.reason, together[at].reason, "{at}");
    }
    for at in [0, 6] {
        assert!(matches!(together[at].reason, Some(Err(_))), "{together:?}");
        assert!(together[at].ids.is_empty());
    }
    assert_eq!(together[3].reason, Some(Ok(StopReason::Cancelled)));
    assert!((1..15).contains(&together[3].ids.len()), "{together:?}");
    assert_eq!(together[5].reason, Some(Ok(StopReason::ContextFull)));
    assert_eq!(together[5].ids.len(), 40 - 35);
}

#[test]
fn a_pass_that_is_preempted_is_repeated() {
    let (prompts, params) = (prompts(), vec![params(1, 0.8, 15); 4]);
    let alone = run_each_alone(&prompts[..4], &params);
    let mut run = submitted(&prompts, &params);
    let (mut preempted, mut ended) = (0, 0);
    while run.scheduler.is_busy() {
        let before = run.written.clone();
        // The tokens of a step come from the pass before it.
        let has_ended = |it: &&WrittenAnswer| it.reason.is_some();
        let ended_before = std::mem::replace(&mut ended, before.iter().filter(has_ended).count());
        let is_repeated = run.preempt.load(Ordering::Relaxed) && ended == ended_before;
        run.preempt.store(run.steps % 3 == 1, Ordering::Relaxed);
        run.step();
        let grown = run.written.iter().zip(&before);
        let grown = grown.filter(|(now, before)| now.ids.len() > before.ids.len());
        if is_repeated && run.scheduler.active.len() > 1 {
            assert_eq!(grown.count(), 0, "step {}", run.steps);
            preempted += 1;
        }
    }
    assert!(preempted > 3, "{preempted} passes");
    for (alone, together) in alone.iter().zip(&run.written) {
        assert_eq!(alone.ids, together.ids);
        assert_eq!(alone.reason, together.reason);
    }
}

#[test]
fn answers_go_on_though_passes_are_preempted_all_the_time() {
    let (prompts, params) = (prompts(), vec![params(1, 0.8, 15); 3]);
    let alone = run_each_alone(&prompts[..3], &params);
    let mut run = submitted(&prompts, &params);
    run.preempt.store(true, Ordering::Relaxed);
    while run.scheduler.is_busy() {
        run.step();
        assert!(run.steps < 200, "{:?}", run.written);
    }
    for (alone, together) in alone.iter().zip(&run.written) {
        assert_eq!(alone.ids, together.ids);
    }
}

#[test]
fn a_short_prompt_does_not_wait_for_a_long_one_nor_delay_it_for_ever() {
    let prompt = |first: u32, length: u32| Prompt::of_ids((first..first + length).collect());
    let mut run = ScheduledRun::new(session(), 4096);
    let long = run.submit(program(&prompt(0, 450)));
    let short: Vec<_> = (1..7)
        .map(|at| run.submit(program(&prompt(at, 90))))
        .collect();
    while run.scheduler.is_busy() {
        run.step();
    }
    let first_token = |of: usize| run.written[of].steps[0];
    let last_short = short.iter().map(|of| first_token(*of)).max().expect("six");
    assert!(last_short < first_token(long));
    let read = &run.written[long].read;
    let (_, read) = read
        .iter()
        .rfind(|(step, _)| *step <= last_short)
        .expect("a part");
    assert!(*read > 32, "{read} tokens of the long one");
}

/// A run of answers, each with its parameters.
fn submitted(prompts: &[Prompt], params: &[GenerateParams]) -> ScheduledRun {
    let mut run = ScheduledRun::new(session(), 4096);
    for (prompt, params) in prompts.iter().zip(params) {
        run.submit(request(prompt, params));
    }
    run
}

/// A request of another program.
fn program(prompt: &Prompt) -> ModelRequest {
    ModelRequest {
        priority: Priority::Api,
        ..request(prompt, &params(1, 0.8, 3))
    }
}

#[test]
fn a_prompt_is_read_beside_an_answer_that_goes_on() {
    let (sizes, end) = (Arc::new(AtomicUsize::new(0)), tokenizer().vocabulary_size());
    let largest = Arc::clone(&sizes);
    let logits = move |_: &[u32]| {
        let mut logits = vec![0.0; end];
        logits[7] = 80.0;
        logits
    };
    let scripted = Scripted::new(logits, move |rows| {
        largest.fetch_max(rows, Ordering::Relaxed);
    });
    let session = even(Session::new(Box::new(scripted)));
    let (short, long) = (Prompt::of_ids(vec![1; 3]), Prompt::of_ids(vec![2; 150]));
    let params = GenerateParams {
        stops_repetition: false,
        lookup: false,
        ..params(1, 0.0, 60)
    };
    let requests = vec![(0, request(&short, &params)), (3, request(&long, &params))];
    let mut before = 0;
    let written = run(session, 4096, requests, |step| {
        // What the passes of the steps so far had for one sequence.
        let rows = sizes.swap(0, Ordering::Relaxed);
        if (5..20).contains(&step) {
            assert!(
                rows < Cpu::BATCH_INVARIANT_MAX,
                "{rows} rows beside an answer"
            );
            before = before.max(rows);
        }
    });
    assert!(before > 1, "the prompt is read in the meantime");
    // A token in every step.
    let steps: Vec<usize> = (1..=60).collect();
    assert_eq!(written[0].steps, steps);
    assert!(written[1].steps[0] < 60, "{:?}", written[1].steps);
}

#[test]
fn a_long_prompt_that_is_read_beside_answers_leaves_these_as_they_are() {
    let prompts = prompts();
    let long = Prompt::of_ids((0..600).map(|at| at * 37 % 500).collect());
    let params = params(1, 0.0, 60);
    let alone = run_each_alone(&prompts[..3], &vec![params.clone(); 3]);
    let requests = prompts[..3]
        .iter()
        .map(|prompt| (0, request(prompt, &params)));
    let requests = requests.chain([(5, request(&long, &params))]);
    let together = run(session(), 4096, requests.collect(), |_| {});
    for (alone, together) in alone.iter().zip(&together) {
        assert_eq!(alone.ids, together.ids);
    }
    // Its own tokens have the rounding of decoding (see the module).
    assert_eq!(together[3].reason, Some(Ok(StopReason::MaxTokens)));
    assert_eq!(together[3].ids.len(), 60);
    assert!(together[3].stats.shared);
}
