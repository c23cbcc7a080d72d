//! The reference renders belong to published templates and lie outside of the repository; the
//! tests that need them are skipped where they are absent.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::{Value, json};

use super::*;
use crate::skipped::skip;

const TODAY: Date = Date::constant(2026, 3, 5);

fn render(source: &str, context: Value) -> String {
    ChatTemplate::parse(source)
        .and_then(|template| template.render(&context, TODAY))
        .unwrap_or_else(|error| panic!("{source:?}: {error}"))
}

/// The folder `shared/reference/template` beside the repository or one of its parents, or
/// `$GOLDCREST_REFERENCE/template`.
fn reference() -> Option<PathBuf> {
    let named = std::env::var_os("GOLDCREST_REFERENCE").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|folder| folder.join("shared/reference"));
    named
        .into_iter()
        .chain(beside)
        .map(|root| root.join("template"))
        .find(|path| path.is_dir())
}

struct Case {
    name: String,
    context: Value,
    rendered: String,
}

/// The source of one published template, and its renders.
fn reference_cases(name: &str) -> Option<(String, Vec<Case>)> {
    let Some(folder) = reference() else {
        skip(&format!(
            "no renders of the published template {name} (shared/reference/template)"
        ));
        return None;
    };
    let read = |file: String| std::fs::read_to_string(folder.join(file)).expect("reference file");
    let cases: Vec<Value> =
        serde_json::from_str(&read(format!("{name}.json"))).expect("reference cases");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let cases = cases
        .into_iter()
        .map(|case| Case {
            name: text(&case["case"]),
            context: case["context"].clone(),
            rendered: text(&case["rendered"]),
        })
        .collect();
    Some((read(format!("smollm3-{name}.jinja")), cases))
}

#[test]
fn published_templates_render_byte_for_byte() {
    for name in ["official", "unsloth"] {
        let Some((source, cases)) = reference_cases(name) else {
            return;
        };
        let template = ChatTemplate::of_file(Some(&source), &SMOLLM3_CHAT, None);
        assert_eq!(template.origin(), TemplateUse::Known, "{name}");
        assert_eq!(cases.len(), 270);
        for case in cases {
            let rendered = template.render(&case.context, TODAY).expect(&case.name);
            assert_eq!(rendered, case.rendered, "{name}: {}", case.name);
        }
        let thinks = Capabilities {
            thinking: true,
            tools: name == "official",
            instructions: true,
        };
        assert_eq!(template.capabilities(), thinks, "{name}");
    }
}

/// Replaces the passages that are the author's own words by `…`: the default instructions and
/// the two paragraphs around the list of tools.
fn without_wording(render: &str, default_instructions: bool) -> String {
    let mut out = render.to_owned();
    let mut blank = |from: &str, to: &[&str]| {
        let Some(start) = out.find(from).map(|at| at + from.len()) else {
            return;
        };
        let length = to
            .iter()
            .filter_map(|to| out[start..].find(to))
            .min()
            .expect("an end");
        out.replace_range(start..start + length, "…");
    };
    if default_instructions {
        blank("## Custom Instructions\n\n", &["\n\n"]);
    }
    blank("### Tools\n\n", &["\n\n<tools>\n"]);
    blank("</tools>\n\n", &["\n<tool_call>\n"]);
    out
}

#[test]
fn built_in_template_has_the_official_structure() {
    let Some((_, cases)) = reference_cases("official") else {
        return;
    };
    let template = ChatTemplate::built_in();
    for case in cases {
        let own = case.context.get("custom_instructions").is_some()
            || case.context["messages"][0]["role"] == "system";
        let rendered = template.render(&case.context, TODAY).expect(&case.name);
        let (ours, theirs) = (&rendered, &case.rendered);
        assert_eq!(
            without_wording(ours, !own),
            without_wording(theirs, !own),
            "{}",
            case.name
        );
    }
}

#[test]
fn built_in_template_follows_the_protocol() {
    let template = ChatTemplate::built_in();
    let all = Capabilities {
        thinking: true,
        tools: true,
        instructions: true,
    };
    assert_eq!(template.capabilities(), all);
    let context = json!({
        "messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "\n\nb"},
            {"role": "user", "content": "c"},
        ],
        "custom_instructions": "Be brief; see /think.",
        "enable_thinking": false,
        "add_generation_prompt": true,
    });
    assert_eq!(
        template.render(&context, TODAY).expect("render"),
        "<|im_start|>system\n## Metadata\n\nKnowledge Cutoff Date: June 2025\n\
         Today Date: 05 March 2026\nReasoning Mode: /no_think\n\n\
         ## Custom Instructions\n\nBe brief; see /think.\n\n\
         <|im_start|>user\na<|im_end|>\n\
         <|im_start|>assistant\n<think>\n\n</think>\nb<|im_end|>\n\
         <|im_start|>user\nc<|im_end|>\n\
         <|im_start|>assistant\n<think>\n\n</think>\n"
    );
}

#[test]
fn values_print_as_python_prints_them() {
    let tool = json!({"a": "b", "it's": "it's", "q": "\"'", "t": true, "n": null, "f": 1.0,
        "small": 0.00001, "big": 1e22, "list": [1, "é\u{a0}\u{200d}🙂\n\\"], "empty": {}});
    let expected = "{'a': 'b', \"it's\": \"it's\", 'q': '\"\\'', 't': True, 'n': None, 'f': 1.0, \
        'small': 1e-05, 'big': 1e+22, 'list': [1, 'é\\xa0\\u200d🙂\\n\\\\'], 'empty': {}}";
    assert_eq!(
        render("{{ tool | string }}", json!({"tool": tool})),
        expected
    );
    assert_eq!(render("{{ tool }}", json!({"tool": tool})), expected);
    assert_eq!(
        render(
            "{{ tool | tojson }}",
            json!({"tool": {"b": ["<é>", 1.5], "a": null}})
        ),
        "{\"b\": [\"<é>\", 1.5], \"a\": null}"
    );
    assert_eq!(
        render("{{ tool | tojson(indent=2) }}", json!({"tool": {"a": [1]}})),
        "{\n  \"a\": [\n    1\n  ]\n}"
    );
}

#[test]
fn python_idioms_work() {
    let cases = [
        ("{{ 'x' in nothing }}", "False"),
        ("{{ nothing }}|{{ nothing is defined }}", "|False"),
        ("{{ '\\n\\na\\n'.lstrip('\\n') }}", "a\n"),
        (
            "{{ ' a '.strip() }}{{ 'b '.rstrip() }}{{ 'aXa'.replace('X', '-') }}",
            "aba-a",
        ),
        (
            "{{ 'abc'.startswith('ab') }}{{ 'abc'.endswith('ab') }}",
            "TrueFalse",
        ),
        (
            "{{ 'a,b'.split(',')[-1] }}{{ [1, 2, 3][1:] }}{{ 'abc'[:2] }}",
            "b[2, 3]ab",
        ),
        (
            "{% set ns = namespace(n=0) %}{% for x in [1, 2, 3] %}{% if x == 3 %}{% break %}\
          {% endif %}{% set ns.n = ns.n + x %}{% endfor %}{{ ns.n }}",
            "3",
        ),
        ("a\n  {% if true %}\n  b\n  {% endif %}\nc\n", "a\n  b\nc"),
        ("x {%- generation -%} y {% endgeneration %} z", "xy  z"),
        (
            "{{ strftime_now('%d %B %Y, %a %b %m %y %j') }}",
            "05 March 2026, Thu Mar 03 26 064",
        ),
        ("{{ '<b>' ~ '&' }}", "<b>&"),
    ];
    for (source, expected) in cases {
        assert_eq!(render(source, json!({})), expected, "{source}");
    }
}

#[test]
fn bad_templates_name_the_line() {
    let error = ChatTemplate::parse("a\nb\n{% if %}").expect_err("a syntax error");
    assert!(
        matches!(error, TemplateError::Syntax { line: 3, .. }),
        "{error:?}"
    );

    let template = ChatTemplate::parse("a\n{{ raise_exception('roles must alternate') }}");
    let error = template
        .expect("template")
        .render(&json!({}), TODAY)
        .expect_err("raised");
    assert_eq!(
        error.to_string(),
        "the chat template failed in line 2: roles must alternate"
    );

    let endless =
        "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
    let template = ChatTemplate::parse(endless).expect("template");
    assert!(
        template.render(&json!({}), TODAY).is_err(),
        "an endless template must stop"
    );
}

/// A sandbox that only notes what it was given, and answers or refuses.
#[derive(Debug, Default)]
struct Noted {
    refuses: bool,
    sources: Mutex<Vec<String>>,
}

impl TemplateSandbox for Noted {
    fn render(&self, source: &str, context: &Value, today: Date) -> Result<String, TemplateError> {
        self.render_each(source, std::slice::from_ref(context), today)
            .remove(0)
    }

    fn render_each(
        &self,
        source: &str,
        contexts: &[Value],
        _: Date,
    ) -> Vec<Result<String, TemplateError>> {
        self.sources
            .lock()
            .expect("not poisoned")
            .push(source.to_owned());
        let answer = |context: &Value| {
            if self.refuses {
                let reason = "it took longer than 2 s".to_owned();
                return Err(TemplateError::Stopped { reason });
            }
            Ok(context.to_string())
        };
        contexts.iter().map(answer).collect()
    }
}

impl Noted {
    fn taken(&self) -> usize {
        self.sources.lock().expect("not poisoned").drain(..).count()
    }
}

const UNKNOWN: &str = "{{ messages[0].content }}";

#[test]
fn an_unknown_template_gives_way_to_the_built_in_one() {
    let template = ChatTemplate::of_file(Some(UNKNOWN), &SMOLLM3_CHAT, None);
    assert_eq!(template.origin(), TemplateUse::Unknown);
    let built_in = ChatTemplate::of_file(None, &SMOLLM3_CHAT, None);
    assert_eq!(built_in.origin(), TemplateUse::BuiltIn);
    assert_eq!(template.capabilities(), built_in.capabilities());
    let context = json!({"messages": [{"role": "user", "content": "Hi"}]});
    assert_eq!(
        template.render(&context, TODAY),
        built_in.render(&context, TODAY)
    );
    // What cannot even be compiled is never looked at.
    let broken = ChatTemplate::of_file(Some("{% if %}"), &SMOLLM3_CHAT, None);
    assert_eq!(broken.origin(), TemplateUse::Unknown);
}

#[test]
fn every_render_of_an_unknown_template_goes_to_the_sandbox() {
    let sandbox = Arc::new(Noted::default());
    let template = ChatTemplate::of_file(Some(UNKNOWN), &SMOLLM3_CHAT, Some(sandbox.clone()));
    assert_eq!(template.origin(), TemplateUse::Own);
    let all = Capabilities {
        thinking: true,
        tools: true,
        instructions: true,
    };
    assert_eq!(template.capabilities(), all);
    assert_eq!(sandbox.taken(), 1, "the probe");
    let context = json!({"messages": [{"role": "user", "content": "Hi"}]});
    let rendered = template.render(&context, TODAY);
    assert_eq!(rendered, Ok(context.to_string()));
    assert_eq!(*sandbox.sources.lock().expect("not poisoned"), [UNKNOWN]);

    // A known one needs none.
    sandbox.taken();
    let known = include_str!("../../../../../../models/demo/template.jinja");
    let known = ChatTemplate::of_file(Some(known), &SMOLLM3_CHAT, Some(sandbox.clone()));
    assert_eq!(known.origin(), TemplateUse::Known);
    assert!(known.render(&context, TODAY).is_ok());
    assert_eq!(sandbox.taken(), 0);
}

#[test]
fn a_template_that_the_sandbox_stops_is_probed_once_and_fails_with_the_reason() {
    let sandbox = Arc::new(Noted {
        refuses: true,
        ..Noted::default()
    });
    let template = ChatTemplate::of_file(Some(UNKNOWN), &SMOLLM3_CHAT, Some(sandbox.clone()));
    assert_eq!(template.capabilities(), Capabilities::default());
    assert!(matches!(
        template.fault(),
        Some(TemplateError::Stopped { .. })
    ));
    assert_eq!(sandbox.taken(), 1);
    let error = template.render(&json!({}), TODAY).expect_err("stopped");
    assert_eq!(
        error.to_string(),
        "the chat template was stopped: it took longer than 2 s"
    );

    let long = format!("{UNKNOWN}{}", "x".repeat(64 << 10));
    sandbox.taken();
    let template = ChatTemplate::of_file(Some(&long), &SMOLLM3_CHAT, Some(sandbox.clone()));
    let error = template.render(&json!({}), TODAY).expect_err("refused");
    assert_eq!(error, TemplateError::TooLong { bytes: long.len() });
    assert_eq!(sandbox.taken(), 0, "it is refused here");
    assert_eq!(
        render_template(&long, &json!({}), TODAY),
        Err(TemplateError::TooLong { bytes: long.len() })
    );
}

/// These ended the process: by a stack overflow, or by an allocation of a terabyte.
#[test]
fn values_without_end_and_fields_without_bounds_are_errors() {
    let selfmap = "{% set ns = namespace(a=1) %}{% set ns.a = ns %}";
    for source in [
        &*format!("{selfmap}{{{{ ns }}}}"),
        &format!("{selfmap}{{{{ ns | string }}}}"),
        &format!("{selfmap}{{{{ ns | tojson }}}}"),
        &format!("{selfmap}{{{{ [ns] | tojson(indent=2) }}}}"),
        "{{ [1] | tojson(indent=1000000000000) }}",
        "{{ [1] | tojson(1000000000000) }}",
        "{{ 'a\nb' | indent(1000000000000) }}",
        "{{ 'a\nb' | indent(width=9300000000000000000) }}",
        "{{ '%1000000000000s' | format('x') }}",
        "{{ '%-1000000000000s' | format('x') }}",
        "{{ '%.1000000000000f' | format(1.5) }}",
        "{{ '%*s' | format(1000000000000, 'x') }}",
        "{{ '{:>1000000000000}'.format('x') }}",
        "{{ '{0:1000000000000}'.format('x') }}",
        "{{ strftime_now('%1000000000000d') }}",
    ] {
        let rendered = render_template(source, &json!({}), TODAY);
        assert!(
            matches!(rendered, Err(TemplateError::Render { .. })),
            "{source}: {rendered:?}"
        );
    }
    // As deep and as wide as values and fields are.
    let mut nested = json!(1);
    for _ in 0..60 {
        nested = json!([nested]);
    }
    let context = json!({"nested": nested});
    for (source, expected) in [
        (
            "{{ nested | length }}{{ nested | string | length }}",
            "1121",
        ),
        ("{{ nested | tojson | length }}", "121"),
        ("{{ 'a\nb' | indent }}", "a\n    b"),
        ("{{ 'a\nb' | indent(2, true) }}", "  a\n  b"),
        (
            "{{ '%5s|%-3d|%.2f 100%%' | format('x', 1, 1.5) }}",
            "    x|1  |1.50 100%",
        ),
        ("{{ '{:>4}|{}'.format('x', 20250101) }}", "   x|20250101"),
    ] {
        assert_eq!(
            render_template(source, &context, TODAY).as_deref(),
            Ok(expected),
            "{source}"
        );
    }
}

#[test]
fn what_a_template_raises_is_one_line_of_bounded_length() {
    let source = "{{ raise_exception('a\\u001b[2J\\u202e\\n' ~ 'x' * 10000) }}";
    let error = render_template(source, &json!({}), TODAY).expect_err("raised");
    let TemplateError::Render { message, .. } = error else {
        panic!("{error}");
    };
    assert!(message.starts_with("a [2J  xxx"), "{message}");
    assert_eq!(message.chars().count(), 500);
}

/// The published templates of other formats, with the renders that transformers makes of them.
#[test]
fn templates_of_other_formats_render_byte_for_byte() {
    let Some(folder) = reference() else {
        skip("no renders of published templates (shared/reference/template)");
        return;
    };
    for (name, protocol, thinks) in [
        ("smollm2", "ChatML", false),
        ("qwen2", "Qwen 2.5", false),
        ("qwen3", "Qwen 3", true),
        ("llama3", "Llama 3", false),
    ] {
        let read =
            |file: String| std::fs::read_to_string(folder.join(file)).expect("reference file");
        let source = read(format!("{name}.jinja"));
        let cases: Vec<Value> = serde_json::from_str(&read(format!("{name}.json"))).expect("cases");
        assert_eq!(cases.len(), 108, "{name}");
        let parsed = ChatTemplate::parse(&source).expect("it compiles");
        let known = ChatTemplate::of_file(Some(&source), &SMOLLM3_CHAT, None);
        assert_eq!(
            (known.origin(), known.protocol().name),
            (TemplateUse::Known, protocol)
        );
        assert_eq!(known.capabilities().thinking, thinks, "{name}");
        let own = ChatTemplate::of_protocol(known.protocol(), TemplateUse::BuiltIn);
        let mut equal = 0;
        for case in &cases {
            let mut context = case["context"].clone();
            context["bos_token"] = "<|begin_of_text|>".into();
            let theirs = case["rendered"].as_str().expect("text");
            let found = parsed.render(&context, TODAY).expect("it renders");
            assert_eq!(found, theirs, "{name}: {}", case["case"]);
            let ours = own.render(&context, TODAY).expect("it renders");
            // The built-in ones have default instructions of their own, and no tools.
            let has_system = context["messages"][0]["role"] == "system";
            let has_tools = context.get("tools").is_some_and(|tools| !tools.is_null());
            let is_chat = context["messages"].as_array().is_some_and(|turns| {
                turns
                    .iter()
                    .all(|turn| turn["role"] != "tool" && turn.get("tool_calls").is_none())
            });
            if has_system && !has_tools && is_chat && name != "qwen3" {
                assert_eq!(ours, theirs, "{name}: {}", case["case"]);
                equal += 1;
            }
        }
        assert!(equal >= 12 || name == "qwen3", "{name}: {equal} compared");
    }
}
