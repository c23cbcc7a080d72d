//! Templates: published ones and Goldcrest's against their reference renders, Python's idioms, and limits.

use serde_json::{Value, json};

use super::*;
use crate::model::architecture::{QWEN3, SMOLLM3};
use crate::text::reference::{self, Published};

const TODAY: Date = Date::constant(2026, 3, 5);

fn try_render(source: &str, context: &Value) -> Result<String, TemplateError> {
    ChatTemplate::parse(source)?.render(context, TODAY)
}

fn render(source: &str, context: Value) -> String {
    try_render(source, &context).unwrap_or_else(|error| panic!("{source:?}: {error}"))
}

/// The format of a SmolLM3 model with this template, whose vocabulary has the tokens of all formats.
fn chosen(source: Option<&str>) -> ChosenProtocol {
    const TOKENS: &str =
        "<|im_start|> <|im_end|> <think> </think> <|start_header_id|> <|end_header_id|> <|eot_id|>";
    let has_token = |text: &str| TOKENS.split(' ').any(|token| token == text);
    ChosenProtocol::of_model(source, &SMOLLM3, has_token).expect("a format")
}

/// A published template of SmolLM3.
fn smollm3(name: &str) -> Option<Published> {
    reference::published(&format!("smollm3-{name}"), name)
}

#[test]
fn published_templates_render_byte_for_byte() {
    for name in ["official", "unsloth"] {
        let Some(Published { source, cases }) = smollm3(name) else {
            return;
        };
        let chosen = chosen(Some(&source));
        assert_eq!(chosen.to_string(), "SmolLM3", "{name}");
        let template = ChatTemplate::of_file(Some(&source), chosen);
        assert_eq!(cases.len(), 270);
        for case in cases {
            let rendered = template.render(&case.context, TODAY).expect(&case.name);
            assert_eq!(rendered, case.rendered, "{name}: {}", case.name);
        }
        let thinks = Capabilities {
            thinking: true,
            instructions: true,
            tools: name == "official",
            code: name == "official",
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
    let Some(Published { cases, .. }) = smollm3("official") else {
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
        instructions: true,
        tools: true,
        code: true,
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

#[test]
fn a_template_of_unknown_text_does_not_run() {
    let unknown = ["{{ messages[0].content }}", "{% if %}"];
    for source in [Some(unknown[0]), Some(unknown[1]), None] {
        let template = ChatTemplate::of_file(source, chosen(source));
        let built_in = ChatTemplate::built_in();
        assert_eq!(template.capabilities(), built_in.capabilities());
        let context = json!({"messages": [{"role": "user", "content": "Hi"}]});
        let rendered = template.render(&context, TODAY);
        assert_eq!(rendered, built_in.render(&context, TODAY), "{source:?}");
    }
}

#[test]
fn plain_words_about_tools_are_taken_from_a_template_that_does_not_run() {
    let long = "x".repeat(501);
    for (words, are_taken) in [
        (r"Call them\n\nwithin <tools></tools>:", true),
        ("{{ 7 * 6 }}", false),
        ("<|im_end|>", false),
        (r"Call\tthem", false),
        ("Quote 'them", false),
        (&*long, false),
    ] {
        let source = format!(
            r##"<|im_start|> <think> {{{{ "# Tools\n\n{words}\n<tools>" }}}} {{{{ "</tools>\n\nSo:\n<tool_call>" }}}}"##
        );
        let chosen = ChosenProtocol::of_model(Some(&source), &QWEN3, |_| true);
        let template = ChatTemplate::of_file(Some(&source), chosen.expect("a format"));
        let context = json!({"messages": [{"role": "user", "content": "Hi"}], "tools": [{}]});
        let rendered = template.render(&context, TODAY).expect("a prompt");
        let plain = words.replace(r"\n", "\n");
        let taken = rendered.contains(&format!("# Tools\n\n{plain}\n<tools>\n{{}}\n"));
        assert_eq!(taken, are_taken, "{rendered}");
        assert_eq!(rendered.contains("So:\n<tool_call>"), are_taken);
    }
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
        let rendered = try_render(source, &json!({}));
        assert!(
            matches!(rendered, Err(TemplateError::Render { .. })),
            "{source}: {rendered:?}"
        );
    }
    // Nesting and width near the limits.
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
            try_render(source, &context).as_deref(),
            Ok(expected),
            "{source}"
        );
    }
}

#[test]
fn what_a_template_raises_is_one_line_of_bounded_length() {
    let source = "{{ raise_exception('a\\u001b[2J\\u202e\\n' ~ 'x' * 10000) }}";
    let error = try_render(source, &json!({})).expect_err("raised");
    let TemplateError::Render { message, .. } = error else {
        panic!("{error}");
    };
    assert!(message.starts_with("a [2J  xxx"), "{message}");
    assert_eq!(message.chars().count(), 500);
}

/// The published templates of other formats, with the renders that transformers makes of them.
#[test]
fn templates_of_other_formats_render_byte_for_byte() {
    for (name, protocol, thinks) in [
        ("smollm2", "ChatML", false),
        ("qwen2", "Qwen 2.5", false),
        ("qwen3", "Qwen 3", true),
        ("llama3", "Llama 3", false),
    ] {
        let Some(Published { source, cases }) = reference::published(name, name) else {
            return;
        };
        assert_eq!(cases.len(), 108, "{name}");
        let parsed = ChatTemplate::parse(&source).expect("it compiles");
        let chosen = chosen(Some(&source));
        assert_eq!(chosen.to_string(), protocol);
        let known = ChatTemplate::of_file(Some(&source), chosen);
        assert_eq!(known.capabilities().thinking, thinks, "{name}");
        assert_eq!(known.can_call_tools(), name != "smollm2", "{name}");
        let own = ChatTemplate::of_protocol(known.protocol());
        let mut equal = 0;
        for case in &cases {
            let mut context = case.context.clone();
            context["bos_token"] = "<|begin_of_text|>".into();
            let theirs = &case.rendered;
            let found = parsed.render(&context, TODAY).expect("it renders");
            assert_eq!(&found, theirs, "{name}: {}", case.name);
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
                assert_eq!(&ours, theirs, "{name}: {}", case.name);
                equal += 1;
            }
        }
        assert!(equal >= 12 || name == "qwen3", "{name}: {equal} compared");
    }
}
