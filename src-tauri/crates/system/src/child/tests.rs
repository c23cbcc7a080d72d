//! Misbehaving children, written as lines of shell.

#![cfg(unix)]

use std::os::unix::process::ExitStatusExt;

use super::*;

fn shell(script: &str) -> Child {
    Child {
        program: "/bin/sh".into(),
        leading: vec!["-c".into(), script.into(), "child".into()],
        timeout: Duration::from_secs(60),
        output_limit: 1000,
    }
}

fn fault(child: &Child) -> ChildError {
    child.run(Call::default()).expect_err("no output")
}

#[test]
fn a_child_that_ends_well_gives_what_it_wrote() {
    let arguments = ["one".into(), "two".into()];
    let call = Call {
        arguments: &arguments,
        variable: Some(("GOLDCREST_TEST_WORD", "word")),
    };
    let output = shell(r#"echo "$1 $2 $GOLDCREST_TEST_WORD""#).run(call);
    assert_eq!(output.expect("an output"), b"one two word\n");
    // There is nothing to wait for on stdin.
    let output = shell("cat; echo end").run(Call::default());
    assert_eq!(output.expect("an output"), b"end\n");
}

#[test]
fn a_child_that_does_not_end_in_time_is_ended() {
    // Hangs before its output, after it, and with stdout closed.
    for script in [
        "exec sleep 1000",
        "echo x; exec sleep 1000",
        "exec >&-; exec sleep 1000",
    ] {
        let child = Child {
            timeout: Duration::from_millis(300),
            ..shell(script)
        };
        let started = Instant::now();
        assert!(
            matches!(fault(&child).fault, ChildFault::TimedOut),
            "{script}"
        );
        assert!(started.elapsed() < Duration::from_secs(500), "{script}");
    }
}

#[test]
fn a_child_that_crashes_or_is_ended_is_distinguished() {
    let crashed = fault(&shell("echo why >&2; kill -SEGV $$"));
    assert!(
        matches!(crashed.fault, ChildFault::Crashed(_)),
        "{crashed:?}"
    );
    assert_eq!(crashed.stderr, "why\n");
    assert!(matches!(
        fault(&shell("exit 3")).fault,
        ChildFault::Crashed(_)
    ));
    let interrupted = fault(&shell("kill -TERM $$"));
    assert!(
        matches!(interrupted.fault, ChildFault::Interrupted),
        "{interrupted:?}"
    );
    // If the tests run in the background, some of these signals may not reach a child's shell.
    for (signal, is_interruption) in [
        (1, true),
        (2, true),
        (6, false),
        (9, false),
        (11, false),
        (15, true),
    ] {
        let status = ExitStatus::from_raw(signal);
        assert_eq!(was_interrupted(status), is_interruption, "{signal}");
    }
    assert!(!was_interrupted(ExitStatus::from_raw(0)));
    let missing = Child {
        program: "/nonexistent/goldcrest".into(),
        ..shell("")
    };
    assert!(matches!(fault(&missing).fault, ChildFault::NotRun(_)));
}

#[test]
fn what_a_child_writes_is_bounded() {
    let endless = fault(&shell("while :; do echo yyyyyyyyyyyyyyyyyyyyyyyy; done"));
    assert!(
        matches!(endless.fault, ChildFault::TooMuchOutput),
        "{endless:?}"
    );
    let whole = shell("head -c 1000 /dev/zero").run(Call::default());
    assert_eq!(whole.expect("an output").len(), 1000);
    let over = fault(&shell("head -c 1001 /dev/zero"));
    assert!(matches!(over.fault, ChildFault::TooMuchOutput), "{over:?}");
    let loud = fault(&shell(
        "head -c 1000000 /dev/zero >&2; echo end >&2; exit 1",
    ));
    assert!(loud.stderr.ends_with("end\n") && loud.stderr.len() <= STDERR_LIMIT);
}
