//! Children that violate the protocol of candle's process. They are lines of shell.

#![cfg(unix)]

use super::*;

static NEVER: AtomicBool = AtomicBool::new(false);

fn opened(script: &str) -> Result<Option<ReferenceProcess>, ReferenceFault> {
    let child = Child {
        program: "/bin/sh".into(),
        leading: vec!["-c".into(), script.into(), "child".into()],
        timeout: LEAST_TIME,
        output_limit: 0,
    };
    ReferenceProcess::open_in(&child, Path::new("no such file"), Some(3), &NEVER)
}

fn reason(script: &str) -> String {
    match opened(script) {
        Ok(_) => "it opens".to_owned(),
        Err(fault) => fault.to_string(),
    }
}

/// Writes a vocabulary of two tokens and a context of one, then `then`.
fn ready(then: &str) -> String {
    format!(r"printf 'Loading 4 decoder layers...\n\0ok\n\2\0\0\0\1\0\0\0'; {then}")
}

#[test]
fn a_child_that_does_not_open_the_model_says_why() {
    assert_eq!(
        reason("echo 'goldcrest: it has no room' >&2; exit 1"),
        "it has no room"
    );
    let crashed = reason("echo 'panic: out of bounds' >&2; exit 101");
    assert!(
        crashed.contains("crashed") && crashed.contains("101") && crashed.contains("out of bounds"),
        "{crashed}"
    );
    let aborted = reason("kill -ABRT $$");
    assert!(aborted.contains("crashed"), "{aborted}");
    assert!(reason("kill -INT $$; sleep 5").contains("was ended"));
    assert!(reason("exit 0").contains("crashed"));
    assert!(reason("head -c 100000 /dev/zero | tr '\\0' x").contains("invalid output"));
    assert!(reason("head -c 100000 /dev/zero").contains("invalid output"));
}

#[test]
fn a_child_that_is_ready_answers_and_its_end_is_an_error() {
    let answer = r"printf '\0\0\200\77\0\0\0\300'; exit 7";
    let opened = opened(&ready(answer))
        .expect("it opens")
        .expect("not cancelled");
    let mut process = opened;
    assert_eq!((process.vocab(), process.context()), (2, 1));
    let mut logits = vec![9.0; 5];
    // The child may have ended before it reads: its output counts.
    if process.read(&[1], &NEVER, &mut logits).is_ok() {
        assert_eq!(logits, [1.0, -2.0]);
    }
    let error = process.append(&[1], &NEVER, &mut logits);
    assert!(error.is_err_and(|error| error.contains("crashed")));
    assert!(process.reset().is_err());
}

#[test]
fn waiting_for_a_child_is_cancelled() {
    let mut process = opened(&ready("exec sleep 1000"))
        .expect("it opens")
        .expect("not cancelled");
    let read = process.read(&[1], &AtomicBool::new(true), &mut Vec::new());
    assert!(read.is_ok_and(|whole| !whole));
    // A read now would get the answer to the request before.
    assert!(process.read(&[1], &NEVER, &mut Vec::new()).is_err());
    assert!(process.forget().is_err());
}

#[test]
fn the_threads_are_named_in_the_environment() {
    assert_eq!(
        reason("echo \"goldcrest: $RAYON_NUM_THREADS threads, $2\" >&2; exit 1"),
        "3 threads, no such file"
    );
}
