//! More urgent requests before others, and those that nobody waits for.

use super::*;
use crate::run::scripted::Scripted;

/// A request of conversation 1 that nobody waits for.
fn unhurried(priority: Priority, prompt: &Prompt) -> ModelRequest {
    ModelRequest {
        priority,
        conversation: 1,
        ..request(prompt, &params(1, 0.0, 12))
    }
}

/// A run whose conversation 1 is in memory, with room for others, and a request for its title.
fn titled() -> (ScheduledRun, ModelRequest) {
    let mut session = session();
    session.set_spare_memory(Box::new(|_, _| 1 << 30));
    let mut run = ScheduledRun::new(session, 4096);
    let prompt = Prompt::of_ids((0..100).map(|at| at * 7 % 500).collect());
    let answer = run.run(ModelRequest {
        conversation: 1,
        ..request(&prompt, &params(1, 0.0, 5))
    });
    let ids = [&prompt.ids[..], &answer.ids, &[3, 1, 4, 1, 5]].concat();
    (run, unhurried(Priority::Title, &Prompt::of_ids(ids)))
}

#[test]
fn an_answer_takes_the_place_of_a_request_of_a_program_which_goes_on_later() {
    let prompt = |at: u32| Prompt::of_ids((0..70).map(|i| (i * 7 + at * 31) % 500).collect());
    let of_program = |at: u32| ModelRequest {
        priority: Priority::Api,
        ..request(&prompt(at), &params(1, 0.0, 600))
    };
    let mut session = session();
    session.set_spare_memory(Box::new(|_, _| 1 << 30));
    let mut run = ScheduledRun::new(session, 4096);
    // Some of them end early.
    let programs: Vec<usize> = (0..24).map(|at| run.submit(of_program(at))).collect();
    let active = |run: &ScheduledRun| -> Vec<usize> {
        let active = run.scheduler.active.iter();
        active.map(|it| it.request.id.0 as usize).collect()
    };
    run.step();
    // The newest one writes, too.
    while active(&run)
        .last()
        .is_none_or(|at| run.written[*at].ids.is_empty())
    {
        run.step();
    }
    let mut before = active(&run);
    assert_eq!(before.len(), 8);
    let answer = run.submit(request(&prompt(30), &params(1, 0.0, 5)));
    run.step();
    let newest = before.pop().expect("one of eight");
    assert_eq!(active(&run), [&before[..], &[answer]].concat());
    let kept = run.sequences();
    let its_prompt = prompt(newest as u32).ids;
    assert!(kept.iter().any(|it| it.starts_with(&its_prompt)));
    run.finish();
    let last = |at: usize| run.written[at].steps.last().copied();
    assert!(last(answer) < last(newest));
    for at in programs {
        assert!(matches!(run.written[at].reason, Some(Ok(_))), "{at}");
        assert!(!run.written[at].ids.is_empty());
    }
}

#[test]
fn an_answer_without_room_takes_the_memory_of_a_program() {
    let room = Arc::new(AtomicUsize::new(1000));
    let mut run = ScheduledRun::new(session(), 4096);
    let free = Arc::clone(&room);
    run.scheduler.set_memory_check(Box::new(move |tokens| {
        tokens <= free.load(Ordering::Relaxed)
    }));
    let prompt = Prompt::of_ids(vec![2; 6]);
    let program = run.submit(ModelRequest {
        priority: Priority::Api,
        ..request(&prompt, &params(1, 0.0, 40))
    });
    while run.written[program].ids.len() < 3 {
        run.step();
    }
    room.store(0, Ordering::Relaxed);
    let answer = run.submit(request(&Prompt::of_ids(vec![3; 6]), &params(1, 0.0, 5)));
    run.step();
    let active = run.scheduler.active.iter().map(|it| it.request.id.0);
    assert_eq!(active.collect::<Vec<_>>(), [answer as u64]);
    room.store(1000, Ordering::Relaxed);
    run.finish();
    // Its tokens are read again, and rounded as those of a prompt.
    assert_eq!(run.written[program].ids.len(), 40);
}

#[test]
fn the_prompt_of_an_answer_is_read_before_those_of_programs() {
    let mut run = ScheduledRun::new(session(), 4096);
    let [long, short] = [200, 20].map(|len| Prompt::of_ids((1..len).collect()));
    run.submit(request(&Prompt::of_ids(vec![2; 3]), &params(1, 0.0, 90)));
    run.step();
    let api = run.submit(ModelRequest {
        priority: Priority::Api,
        ..request(&long, &params(1, 0.0, 5))
    });
    run.step();
    run.step();
    let short = Prompt::of_ids(short.ids.iter().map(|id| id + 300).collect());
    let answer = run.submit(request(&short, &params(1, 0.0, 5)));
    run.finish();
    let first = |at: usize| run.written[at].steps[0];
    assert!(first(answer) < first(api));
}

#[test]
fn requests_that_end_with_the_same_pass_are_reported_one_after_the_other() {
    let prompt = &prompts()[0];
    let mut run = ScheduledRun::new(session(), 4096);
    for _ in 0..3 {
        run.submit(request(prompt, &params(1, 0.0, 5)));
    }
    let mut ended = 0;
    while run.scheduler.is_busy() {
        run.step();
        let now = run.written.iter().filter(|it| it.reason.is_some()).count();
        assert!(now <= ended + 1, "a panic of the next one would lose it");
        ended = now;
    }
    assert_eq!(ended, 3);
}

#[test]
fn what_nobody_waits_for_comes_last_and_a_title_after_what_is_read_ahead() {
    let prompt = Prompt::of_ids(vec![2; 300]);
    let (mut run, title) = titled();
    let title = run.submit(title);
    let ahead = run.submit(unhurried(Priority::ReadAhead, &prompt));
    let api = run.submit(unhurried(Priority::Api, &prompt));
    let order = [api, ahead, title];
    for (at, of) in order.into_iter().enumerate() {
        while run.written[of].reason.is_none() {
            run.step();
        }
        let later = order[at + 1..].iter().map(|&it| &run.written[it]);
        assert!(
            later
                .clone()
                .all(|it| it.reason.is_none() && it.ids.is_empty())
        );
    }
    assert_eq!(run.written[title].ids.len(), 12);
}

#[test]
fn a_title_leaves_its_conversation_as_it_is() {
    let (mut run, title) = titled();
    let before = run.sequences();
    let written = run.run(title);
    assert_eq!(written.reason, Some(Ok(StopReason::MaxTokens)));
    assert_eq!(written.ids.len(), 12);
    assert_eq!(written.stats.cached_tokens, before[0].len());
    assert_eq!(run.sequences(), before);
}

#[test]
fn a_conversation_that_is_not_in_memory_has_no_title() {
    let (mut run, title) = titled();
    let before = run.sequences();
    // Another beginning, and a part of what is in memory.
    for ids in [vec![9; 120], before[0][..100].to_vec()] {
        let written = run.run(ModelRequest {
            prompt: Prompt::of_ids(ids),
            ..title.clone()
        });
        assert_eq!(written.reason, Some(Ok(StopReason::Cancelled)));
        assert!(written.ids.is_empty());
        assert_eq!(run.sequences(), before);
    }
}

#[test]
fn a_title_gives_way_to_an_answer_and_begins_again() {
    let (mut run, title) = titled();
    let undisturbed = run.run(title);
    let question = request(&Prompt::of_ids(vec![2; 6]), &params(1, 0.0, 10));
    let alone = run_alone(question.clone());
    let (mut run, title) = titled();
    let title = run.submit(title);
    while run.written[title].ids.len() < 3 {
        run.step();
    }
    let answer = run.submit(question);
    run.step();
    let others = run.scheduler.active.iter().map(|it| it.request.priority);
    assert_eq!(others.collect::<Vec<_>>(), [Priority::Answer]);
    run.finish();
    let [title, answer] = [title, answer].map(|at| &run.written[at]);
    assert_eq!(answer.ids, alone.ids);
    assert_eq!(title.ids, undisturbed.ids);
    assert_eq!(title.reason, undisturbed.reason);
    assert!(title.steps.first() > answer.steps.last());
}

#[test]
fn a_draft_that_a_device_cannot_read_ahead_leaves_its_cache_alone() {
    let vocab = tokenizer().vocabulary_size();
    let scripted = Scripted::new(move |_| vec![0.0; vocab], |_| {});
    let mut run = ScheduledRun::new(even(Session::new(Box::new(scripted))), 4096);
    run.run(request(&Prompt::of_ids(vec![2; 100]), &params(1, 0.0, 3)));
    let before = run.sequences();
    let draft = Prompt::of_ids(vec![3; 300]);
    let ahead = run.run(unhurried(Priority::ReadAhead, &draft));
    assert_eq!(ahead.reason, Some(Ok(StopReason::EndOfTurn)));
    assert_eq!(run.sequences(), before);
}

#[test]
fn a_message_is_read_ahead_up_to_the_end_of_its_turn() {
    let end = tokenizer().turn_ends()[0];
    let mut ids: Vec<u32> = (0..300).map(|at| at * 7 % 500).collect();
    (ids[150], ids[290]) = (end, end);
    let prompt = Prompt::of_ids(ids);
    let mut run = ScheduledRun::new(session(), 4096);
    let ahead = run.submit(unhurried(Priority::ReadAhead, &prompt));
    run.step();
    assert_eq!(run.sequences(), [prompt.ids[..128].to_vec()], "a block");
    // Nothing comes of a step that is preempted.
    run.preempt.store(true, Ordering::Relaxed);
    run.step();
    assert_eq!(run.sequences(), [prompt.ids[..128].to_vec()]);
    assert!(run.written[ahead].reason.is_none());
    run.preempt.store(false, Ordering::Relaxed);
    run.finish();
    assert_eq!(run.written[ahead].reason, Some(Ok(StopReason::EndOfTurn)));
    assert!(run.written[ahead].ids.is_empty());
    assert_eq!(run.sequences(), [prompt.ids[..290].to_vec()]);
    let answer = run.run(request(&prompt, &params(1, 0.0, 5)));
    assert_eq!(answer.stats.cached_tokens, 290);
}
