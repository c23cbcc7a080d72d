use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::frame::MOST_OUTPUT;
use super::*;
use crate::clock::now;
use crate::process::tests::{ended, program, within};
use crate::tool::text_of;

const LONG: Duration = Duration::from_secs(60);

/// A tool that returns its arguments, fails, or waits.
struct Echo;

impl Tool for Echo {
    fn info(&self) -> Arc<ToolInfo> {
        let parameters = json!({
            "type": "object",
            "properties": { "text": { "type": "string" }, "more": {} },
            "required": ["text"],
        });
        Arc::new(ToolInfo::built_in(
            "echo-it",
            "Echo",
            "",
            parameters,
            Effects::default(),
        ))
    }

    fn run(
        &self,
        arguments: &Map<String, Value>,
        run: &ToolRun<'_>,
    ) -> Result<ToolOutput, ToolError> {
        assert!(run.functions.is_empty());
        match text_of(arguments, "text") {
            "fail" => Err(ToolError::Failed("It failed.".to_owned())),
            "plain" => Ok(ToolOutput::new("no JSON")),
            "wait" => loop {
                run.check()?;
                std::thread::sleep(Duration::from_millis(5));
            },
            _ => Ok(ToolOutput::new(
                Value::Object(arguments.clone()).to_string(),
            )),
        }
    }
}

fn code(code: &str) -> Map<String, Value> {
    Map::from_iter([("code".to_owned(), code.into())])
}

fn result(program_text: &str) -> Result<ToolOutput, ToolError> {
    let functions: [Arc<dyn Tool>; 2] = [Arc::new(Echo), Arc::new(Python::new(program()))];
    let run = ToolRun {
        deadline: Instant::now() + LONG,
        cancel: &AtomicBool::new(false),
        functions: &functions,
        chat: None,
    };
    Python::new(program()).run(&code(program_text), &run)
}

fn prints(program_text: &str) -> String {
    match result(program_text) {
        Ok(output) => output.text,
        Err(error) => panic!("{program_text}: {error}"),
    }
}

fn fails(program_text: &str) -> String {
    match result(program_text) {
        Ok(output) => panic!("{program_text}: {}", output.text),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_program_gives_what_it_prints_and_its_last_value() {
    assert_eq!(
        prints("print('Grüße', 1 + 1)\n[1, 'a', None]"),
        "Grüße 2\n[1, 'a', None]"
    );
    assert_eq!(
        prints("x = 1"),
        "The program printed nothing. Use print() to see a value."
    );
    let failed = fails("print('before')\n1 / 0");
    assert!(
        failed.starts_with("before\nTraceback (most recent call last):\n"),
        "{failed}"
    );
    assert!(
        failed.ends_with("ZeroDivisionError: division by zero"),
        "{failed}"
    );
    let wrong = fails("def f(:\n  pass");
    assert!(wrong.contains("SyntaxError"), "{wrong}");
}

#[test]
fn the_language_that_models_write_runs() {
    for (program, value) in [
        (
            "f'{3.14159:.2f} {42:>5} {1234567:,} {len(\"x\")!r}'",
            "'3.14    42 1,234,567 1'",
        ),
        (
            "{k: [v * 2 for v in vs if v] for k, vs in {'a': [0, 1]}.items()}",
            "{'a': [2]}",
        ),
        (
            "def f(*a, b=2, **c):\n    return sum(a) + b + len(c)\nf(1, 2, b=3, d=4)",
            "7",
        ),
        (
            "class A:\n    def __init__(self, x):\n        self.x = x\n    def d(self):\n        return self.x * 2\nA(4).d()",
            "8",
        ),
        (
            "sorted(['bb', 'a'], key=lambda s: -len(s), reverse=True)",
            "['a', 'bb']",
        ),
        (
            "import math\nround(math.sqrt(2) + math.pi + math.comb(5, 2), 4)",
            "14.5558",
        ),
        (
            "import json\njson.dumps(json.loads('{\"a\": [1.5, null]}'))",
            "'{\"a\": [1.5, null]}'",
        ),
        (
            "import re\nre.findall(r'(\\d+)-(\\w)', '12-a 3-b')",
            "[('12', 'a'), ('3', 'b')]",
        ),
        (
            "from datetime import date, timedelta\nstr(date(2024, 2, 28) + timedelta(days=2))",
            "'2024-03-01'",
        ),
        ("sum([0.5] * 3)", "1.5"),
        ("2 ** 200 % 1000007", "446616"),
        (
            "try:\n    int('x')\nexcept ValueError as e:\n    r = str(e)\nr",
            "\"invalid literal for int() with base 10: 'x'\"",
        ),
        (
            "from collections import Counter\nCounter('abca').most_common(1)",
            "[('a', 2)]",
        ),
        (
            "a, *b = 1, 2, 3\nwhile (n := len(b)) > 1:\n    b.pop()\n(a, b, n)",
            "(1, [2], 1)",
        ),
        (
            "'a,b'.split(',') + ['x'.join('12')] + list(map(str, range(2)))",
            "['a', 'b', '1x2', '0', '1']",
        ),
    ] {
        assert_eq!(prints(program), value, "{program}");
    }
    let today =
        prints("import datetime\nprint(datetime.date.today().year, datetime.datetime.now().year)");
    let year = now().year();
    assert_eq!(today, format!("{year} {year}"));
}

#[test]
fn tools_are_functions_of_a_program() {
    assert_eq!(
        prints("echo_it('a', more=[1, {'b': 2.5}])['more'][1]['b']"),
        "2.5"
    );
    assert_eq!(
        prints("echo_it('a', (1, None))"),
        "{'text': 'a', 'more': [1, None]}"
    );
    assert_eq!(prints("echo_it(text='plain')"), "'no JSON'");
    assert_eq!(
        prints("[echo_it(t)['text'] for t in 'abc']"),
        "['a', 'b', 'c']"
    );
    for (program, exception) in [
        ("echo_it('fail')", "RuntimeError: It failed."),
        ("echo_it()", "RuntimeError: echo-it: `text` is missing."),
        (
            "echo_it(1)",
            "RuntimeError: echo-it: `text` must be a string, not a number.",
        ),
        (
            "echo_it('a', 2, 3)",
            "RuntimeError: echo_it() takes at most 2 arguments, not 3.",
        ),
        (
            "echo_it('a', text='b')",
            "RuntimeError: echo_it() has two values for `text`.",
        ),
        (
            "echo_it('a', float('nan'))",
            "TypeError: an argument is not a finite number",
        ),
        (
            "run_python('1')",
            "NameError: name 'run_python' is not defined",
        ),
        ("unknown(1)", "NameError: name 'unknown' is not defined"),
    ] {
        let failed = fails(program);
        assert!(failed.ends_with(exception), "{failed}");
    }
    assert_eq!(
        prints("try:\n    echo_it('fail')\nexcept RuntimeError as e:\n    print(e)"),
        "It failed."
    );
}

#[test]
fn there_are_no_files_no_network_and_no_processes() {
    for (program, exception) in [
        ("open('/etc/passwd')", "PermissionError"),
        ("open('new', 'w')", "PermissionError"),
        (
            "from pathlib import Path\nPath('/etc/passwd').read_text()",
            "PermissionError",
        ),
        ("import os\nos.listdir('/')", "PermissionError"),
        ("import os\nos.system('true')", "AttributeError"),
        ("import socket", "ModuleNotFoundError"),
        ("import subprocess", "ModuleNotFoundError"),
        ("import ctypes", "ModuleNotFoundError"),
        ("__import__('socket')", "Error"),
        ("eval('1')", "NameError"),
    ] {
        let failed = fails(program);
        assert!(failed.contains(exception), "{program}: {failed}");
    }
    assert_eq!(
        prints("import os\nlen(os.environ), os.getenv('HOME')"),
        "(0, None)"
    );
}

#[test]
fn what_takes_too_much_ends() {
    let began = Instant::now();
    let endless = fails("print('begun')\nwhile True:\n    pass");
    assert!(
        endless.starts_with("begun\n") && endless.contains("time limit exceeded"),
        "{endless}"
    );
    assert!(
        began.elapsed() < Duration::from_secs(13),
        "{:?}",
        began.elapsed()
    );
    for (program, says) in [
        ("[0] * 10**10", "MemoryError"),
        (
            "a = []\nwhile True:\n    a.append('x' * 1000000 + str(len(a)))",
            "memory",
        ),
        ("2 ** 10**10", "MemoryError"),
        (
            "def f():\n    f()\nf()",
            "RecursionError: maximum recursion depth exceeded",
        ),
        (&("(".repeat(5_000) + "1" + &")".repeat(5_000)), "Error"),
        (&("[".repeat(500) + &"]".repeat(500)), "Error"),
    ] {
        let failed = fails(program);
        assert!(failed.contains(says), "{program:.60}: {failed:.300}");
    }
    let nested = prints("a = []\nfor _ in range(100000):\n    a = [a]\nprint(a)");
    assert!(nested.starts_with("[[[["), "{nested:.300}");
    let long = prints("for i in range(200000):\n    print(i)\n'x' * 100000");
    assert!(
        long.len() < 2 * MOST_OUTPUT + 100 && long.contains(" more bytes were cut off)"),
        "{}",
        long.len()
    );
}

#[test]
fn a_program_is_cancelled_at_once_and_ends_at_its_deadline() {
    let python = Python::new(program());
    ended(|run| python.run(&code("while True:\n    pass"), run));
    let echo: [Arc<dyn Tool>; 1] = [Arc::new(Echo)];
    ended(|run| {
        let run = ToolRun {
            functions: &echo,
            chat: None,
            ..*run
        };
        python.run(&code("echo_it('wait')"), &run)
    });
    let late = within(Duration::from_millis(500), |run| {
        python.run(&code("while True:\n    pass"), run)
    });
    assert_eq!(late, Err(ToolError::TimedOut));
}
