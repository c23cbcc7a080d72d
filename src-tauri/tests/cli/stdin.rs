//! Questions from a pipe.

use super::*;

#[test]
fn a_question_on_stdin_is_one_in_every_encoding() {
    let exact = ["ask", "--temperature", "0", "--no-think"];
    let answer = stdout(run([&exact[..], &[QUESTION]].concat()));
    let utf16 = format!("\u{feff}{QUESTION}")
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for input in [format!("\u{feff}{QUESTION}").into_bytes(), utf16] {
        let piped = run_with_input(&[&exact[..], &["-"]].concat(), input);
        assert_eq!(stdout(piped), answer);
    }
    for (input, why) in [
        (&b""[..], "no question on stdin"),
        (b" \n\t\r\n", "no question on stdin"),
        (b"\xef\xbb\xbf\n", "no question on stdin"),
        (b"Gr\xfc\xdfe", "stdin is not UTF-8"),
    ] {
        let error = refusal(run_with_input(&["ask", "-"], input), 1);
        assert!(error.contains(why), "{error}");
    }
    assert!(refusal(run(["ask", " "]), 1).contains("no question"));
}

#[cfg(unix)]
#[test]
fn a_stdin_without_an_end_is_refused() {
    for args in [&["ask", "-"][..], &["chat"]] {
        let endless = fs::File::open("/dev/zero").expect("there is one");
        let output = goldcrest().args(args).stdin(endless).output();
        let error = refusal(output.expect("the binary starts"), 1);
        assert!(error.contains("longer than a message can be"), "{error}");
    }
}
