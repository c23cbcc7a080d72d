//! Adversarial chat templates that try to crash, hang or exhaust the app, as a separate file and inside a model file:
//! each is refused in a sentence, in time.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

#[path = "hostile/files.rs"]
mod files;

/// Time limit that is never reached, even on a busy machine: a rendering has two seconds.
const LONGEST: Duration = Duration::from_secs(60);
/// Number of concurrent cases.
const WORKERS: usize = 3;

fn goldcrest<S: AsRef<OsStr>>(arguments: &[S]) -> Output {
    let started = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_goldcrest"));
    for variable in ["RUST_LOG", "GOLDCREST_DEVICE", "DISPLAY", "WAYLAND_DISPLAY"] {
        command.env_remove(variable);
    }
    let output = command.stdin(Stdio::null()).args(arguments).output();
    let output = output.expect("the binary starts");
    assert!(started.elapsed() < LONGEST, "{:?}", started.elapsed());
    output
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Checks that it exited with a sentence about the template, or printed a prompt of bounded length.
#[track_caller]
fn survived(name: &str, output: &Output) {
    let errors = errors(output);
    assert!(!errors.contains("panicked"), "{name}: {errors}");
    match output.status.code() {
        Some(0) => assert!(output.stdout.len() < 5 << 20, "{name}"),
        Some(1) => {
            assert!(errors.contains("the chat template "), "{name}: {errors}");
            assert_eq!(errors.lines().count(), 1, "{name}: {errors}");
            assert!(errors.len() < 1000, "{name}: {errors}");
        }
        _ => panic!("{name}: {}: {errors}", output.status),
    }
}

/// Checks the reason. On a busy machine any template may time out first.
#[track_caller]
fn refused_for(name: &str, reason: &str, output: &Output) {
    let errors = errors(output);
    let late = "took longer than 2 s";
    assert!(
        errors.contains(reason) || errors.contains(late),
        "{name}: {errors}"
    );
}

/// Runs all cases, a few at a time.
fn each<T: Send>(cases: Vec<T>, run: impl Fn(T) + Sync) {
    let cases = Mutex::new(cases);
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                // A statement of its own, so that the lock is free while the case runs.
                let next = || cases.lock().expect("not poisoned").pop();
                while let Some(case) = next() {
                    run(case);
                }
            });
        }
    });
}

struct Folder {
    folder: TempDir,
    messages: PathBuf,
}

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let messages = folder.path().join("messages.json");
        let asked = r#"{"context": {"messages": [{"role": "user", "content": "Hi"}]}, "today": "2026-03-05"}"#;
        fs::write(&messages, asked).expect("written");
        Self { folder, messages }
    }

    /// Runs `goldcrest render --template` on this source.
    fn render(&self, name: &str, source: &str) -> Output {
        let file = self.folder.path().join(format!("{name}.jinja"));
        fs::write(&file, source).expect("written");
        goldcrest(&[
            OsStr::new("render"),
            OsStr::new("--template"),
            file.as_os_str(),
            OsStr::new("--messages"),
            self.messages.as_os_str(),
        ])
    }

    /// Makes the demo model with this chat template.
    fn model(&self, name: &str, source: &str) -> PathBuf {
        let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/demo");
        let image = fs::read(models.join("demo-q4_k_m.gguf")).expect("the demo model");
        let usual = fs::read(models.join("template.jinja")).expect("its template");
        let usual = usual.trim_ascii_end();
        let at = image.windows(usual.len()).position(|part| part == usual);
        let at = at.expect("the template is in the file");
        let stored = u64::from_le_bytes(image[at - 8..at].try_into().expect("a length"));
        let end = at + usize::try_from(stored).expect("a length");
        // Tensors are aligned, so later data may only move by whole units.
        let mut text = source.as_bytes().to_vec();
        while text.len() % 32 != (end - at) % 32 {
            text.push(b' ');
        }
        let length = u64::try_from(text.len()).expect("a length").to_le_bytes();
        let file = self.folder.path().join(format!("{name}.gguf"));
        fs::write(
            &file,
            [&image[..at - 8], &length, &text, &image[end..]].concat(),
        )
        .expect("written");
        file
    }
}

/// Returns the templates of the folder `hostile`.
fn hostile() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile");
    let files = fs::read_dir(folder).expect("the folder");
    let paths = files.map(|file| file.expect("a file").path());
    let templates = paths.filter(|path| path.extension() == Some(OsStr::new("jinja")));
    let read = templates.map(|path| {
        let name = path.file_stem().expect("a name").to_string_lossy();
        (
            name.into_owned(),
            fs::read_to_string(&path).expect("a template"),
        )
    });
    let read: Vec<_> = read.collect();
    assert_eq!(read.len(), 20);
    read
}

/// Expected reasons of some templates; the others may end in one way or another.
const REASONS: [(&str, &str); 10] = [
    ("selfmap", "nested more than 64 deep"),
    ("selfmap_json", "nested more than 64 deep"),
    ("tojson_indent", "more than 32"),
    ("indent_width", "more than 32"),
    ("indent_over", "more than 32"),
    ("format_width", "wider than 1000"),
    ("strformat_width", "wider than 1000"),
    ("slow_upper", "ran out of fuel"),
    ("slow_eq", "took longer than 2 s"),
    ("macro_rec", "failed in line 1"),
];

#[test]
fn no_template_of_a_file_ends_hangs_or_fills_the_program() {
    let folder = Folder::new();
    each(hostile(), |(name, source)| {
        let output = folder.render(&name, &source);
        survived(&name, &output);
        if let Some((_, reason)) = REASONS.iter().find(|(known, _)| *known == name) {
            refused_for(&name, reason, &output);
        }
    });
}

#[test]
fn no_template_inside_a_model_ends_hangs_or_fills_the_program() {
    let folder = Folder::new();
    each(hostile(), |(name, source)| {
        let model = folder.model(&name, &source);
        let model = model.to_str().expect("UTF-8");
        let inspected = goldcrest(&["inspect", model]);
        assert!(inspected.status.success(), "{name}: {}", errors(&inspected));
        let text = String::from_utf8_lossy(&inspected.stdout).into_owned();
        assert!(
            text.contains("The chat template is unknown: the built-in SmolLM3 protocol is used"),
            "{name}: {text}"
        );
        let ask = ["ask", "--model", model, "--max-tokens", "1", "--no-think"];
        let built_in = goldcrest(&[&ask[..], &["Hi"]].concat());
        assert!(built_in.status.success(), "{name}: {}", errors(&built_in));
        assert!(errors(&built_in).contains("chat template is unknown"));
        survived(
            &name,
            &goldcrest(&[&ask[..], &["--own-template", "Hi"]].concat()),
        );
    });
}

#[test]
fn a_template_that_behaves_in_the_probe_is_stopped_when_it_matters() {
    let folder = Folder::new();
    let source = "{% if messages[-1].content == 'Hi' %}Hi{% else %}\
        {% set a = 'x' * 100000000 %}{% set b = 'x' * 100000000 %}\
        {% for i in range(100000) %}{% if a == b and false %}x{% endif %}{% endfor %}{% endif %}";
    let model = folder.model("late", source);
    let model = model.to_str().expect("UTF-8");
    let ask = [
        "ask",
        "--model",
        model,
        "--max-tokens",
        "1",
        "--own-template",
    ];
    let hi = goldcrest(&[&ask[..], &["Hi"]].concat());
    assert!(hi.status.success(), "{}", errors(&hi));
    let other = goldcrest(&[&ask[..], &["Hello"]].concat());
    assert_eq!(other.status.code(), Some(1));
    assert!(
        errors(&other).contains("took longer than 2 s"),
        "{}",
        errors(&other)
    );
    let built_in = goldcrest(&["ask", "--model", model, "--max-tokens", "1", "Hello"]);
    assert!(built_in.status.success(), "{}", errors(&built_in));
}

#[test]
fn a_files_own_template_writes_the_prompt_where_that_is_wished() {
    let folder = Folder::new();
    let model = folder.model(
        "own",
        "<{{ messages[-1].content }}>{{ strftime_now('%Y') }}",
    );
    let render = |own: &[&str]| {
        let model = model.to_str().expect("UTF-8");
        let messages = folder.messages.to_str().expect("UTF-8");
        goldcrest(&[&["render", "--model", model, "--messages", messages], own].concat())
    };
    let own = render(&["--own-template"]);
    assert!(own.status.success(), "{}", errors(&own));
    assert_eq!(String::from_utf8_lossy(&own.stdout).trim_end(), "<Hi>2026");
    let built_in = render(&[]);
    let text = String::from_utf8_lossy(&built_in.stdout).into_owned();
    assert!(
        text.starts_with("<|im_start|>system\n## Metadata"),
        "{text}"
    );
    assert!(errors(&built_in).contains("chat template is unknown"));
}

#[test]
fn memory_and_output_are_bounded_and_what_keeps_within_is_rendered() {
    let folder = Folder::new();
    let all = |megabytes: usize| {
        format!(
            "{{% set part = 'x' * 1000000 %}}{{% set all %}}{{% for i in range({megabytes}) %}}{{{{ part }}}}\
             {{% endfor %}}{{% endset %}}{{{{ all|length }}}}"
        )
    };
    let printed = |megabytes: usize| {
        format!("{{% for i in range({megabytes}) %}}{{{{ 'x' * 1000000 }}}}{{% endfor %}}")
    };
    let kept = folder.render("kept", &all(20));
    assert!(kept.status.success(), "{}", errors(&kept));
    assert_eq!(kept.stdout, b"20000000");
    let short = folder.render("short", &printed(4));
    assert!(short.status.success(), "{}", errors(&short));
    assert_eq!(short.stdout.len(), 4_000_000);
    for (name, source, reason) in [
        ("filled", all(700), "it crashed, or took too much memory"),
        ("long", printed(5), "it wrote more than 4 MB"),
    ] {
        let output = folder.render(name, &source);
        assert_eq!(output.status.code(), Some(1), "{name}");
        refused_for(name, reason, &output);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_process_that_renders_limits_itself_before_it_reads() {
    use std::io::Read;
    let mut child = Command::new(env!("CARGO_BIN_EXE_goldcrest"))
        .arg("render-template")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut started = [0];
    let stdout = child.stdout.as_mut().expect("piped");
    stdout.read_exact(&mut started).expect("it starts");
    assert_eq!(started, *b">");
    let read = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", child.id()));
    let (limits, status) = (read("limits").expect("read"), read("status").expect("read"));
    child.kill().expect("it waits for its request");
    child.wait().expect("it ends");

    let limit = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name));
        let mut values = line.expect("a limit").split_whitespace();
        let (soft, hard) = (values.next(), values.next());
        assert_eq!(soft, hard, "{name}: it cannot be raised again");
        soft.and_then(|value| value.parse::<u64>().ok())
    };
    assert_eq!(limit("Max stack size"), Some(8 << 20));
    assert_eq!(limit("Max cpu time"), Some(3));
    // None, even where the system pipes cores to a program: only a limit of 1 stops that.
    assert_eq!(limit("Max core file size"), Some(1));
    let taken = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kilobytes = taken.and_then(|taken| taken.split_whitespace().next()?.parse::<u64>().ok());
    let taken = kilobytes.expect("its size") << 10;
    // It has hardly grown since.
    let free = limit("Max address space").expect("a limit") - taken;
    assert!(free <= 512 << 20 && free > 500 << 20, "{free}");
}

/// Makes a source of five parts, the second and the fourth of them repeated.
fn chain(times: usize, (begin, link, middle, close, end): Chain) -> String {
    [
        begin,
        &link.repeat(times),
        middle,
        &close.repeat(times),
        end,
    ]
    .concat()
}

type Chain = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

const CHAINS: [Chain; 29] = [
    ("{{ 1", "|string", "", "", " }}"),
    ("{{ a", ".a", "", "", " }}"),
    ("{{ a", "[0]", "", "", " }}"),
    ("{{ a", "()", "", "", " }}"),
    ("{{ 1", "+1", "", "", " }}"),
    ("{{ 1", "~1", "", "", " }}"),
    ("{{ 1", " and 1", "", "", " }}"),
    ("{{ 1", " or 1", "", "", " }}"),
    ("{{ ", "1 if 1 else ", "1", "", " }}"),
    ("{{ ", "not ", "1", "", " }}"),
    ("{{ ", "-", "1", "", " }}"),
    ("{{ 1", " is defined", "", "", " }}"),
    ("{{ 1", "**1", "", "", " }}"),
    ("{{ 1", " < 1", "", "", " }}"),
    ("{{ 1", " in a", "", "", " }}"),
    ("{% if 0 %}", "{% elif 0 %}", "", "", "{% endif %}"),
    ("{{ ", "(", "1", ")", " }}"),
    ("{{ ", "[", "1", "]", " }}"),
    ("{{ ", "{'a':", "1", "}", " }}"),
    ("{{ ", "f(", "1", ")", " }}"),
    ("", "{% if 1 %}", "1", "{% endif %}", ""),
    ("", "{% for a in [1] %}", "1", "{% endfor %}", ""),
    ("", "{% set a %}", "1", "{% endset %}", ""),
    ("", "{% with a = 1 %}", "1", "{% endwith %}", ""),
    ("", "{% macro a() %}", "1", "{% endmacro %}", ""),
    ("", "{% filter upper %}", "1", "{% endfilter %}", ""),
    ("", "{% set a = 1 %}", "", "", ""),
    ("", "{{ 1 }}", "", "", ""),
    ("", "{#", "", "", ""),
];

#[test]
fn no_chain_of_operators_filters_brackets_or_tags_ends_the_program() {
    /// Length just below the limit of 64 KB, above which a template is not rendered.
    const FITS: usize = 60_000;
    let folder = Folder::new();
    let mut cases = Vec::new();
    for (at, links) in CHAINS.into_iter().enumerate() {
        let each = links.1.len() + links.3.len();
        cases.push((format!("chain-{at}"), chain(FITS / each, links)));
        cases.push((format!("long-{at}"), chain(200_000, links)));
    }
    each(cases, |(name, source)| {
        let output = folder.render(&name, &source);
        survived(&name, &output);
        if name.starts_with("long") {
            let errors = errors(&output);
            assert!(errors.contains("bytes; at most 65536"), "{name}: {errors}");
        }
    });
}

#[test]
fn no_width_or_count_fills_the_program() {
    let folder = Folder::new();
    let sources = [
        "{{ [1]|tojson(indent=N) }}",
        "{{ [1]|tojson(N) }}",
        "{{ 'a\nb'|indent(N) }}",
        "{{ 'a\nb'|indent(width=N) }}",
        "{{ '%Ns'|format('x') }}",
        "{{ '%-Ns'|format('x') }}",
        "{{ '%.Nf'|format(1.5) }}",
        "{{ '%*s'|format(N, 'x') }}",
        "{{ '{:>N}'.format('x') }}",
        "{{ '{:{}}'.format('x', N) }}",
        "{{ 'x'.center(N) }}",
        "{{ 'x'|center(N) }}",
        "{{ 'x'.ljust(N) }}",
        "{{ 'x'.rjust(N) }}",
        "{{ 'x'.zfill(N) }}",
        "{{ 'x'.expandtabs(N) }}",
        "{{ 'x' * N }}",
        "{{ [0] * N }}",
        "{{ ([0] * N)|tojson }}",
        "{{ range(N)|list|length }}",
        "{{ range(N) }}",
        "{{ [1]|batch(N, 'x')|list }}",
        "{{ [1]|slice(N)|list }}",
        "{{ 1.5|round(N) }}",
        "{{ 2 ** N }}",
        "{{ 'x'|wordwrap(N) }}",
        "{{ strftime_now('%Nd') }}",
        "{{ lipsum(N) }}",
    ];
    let numbers = ["1000000000", "1000000000000", "9300000000000000000"];
    let cases = sources
        .iter()
        .enumerate()
        .flat_map(|(at, source)| numbers.map(|n| (at, n, source.replace('N', n))))
        .map(|(at, n, source)| (format!("width-{at}-{n}"), source));
    each(cases.collect(), |(name, source)| {
        survived(&name, &folder.render(&name, &source));
    });
}
