//! What a child's end means for a prompt. The children are lines of shell; tests/hostile.rs has the real one.

#![cfg(unix)]

use serde_json::json;

use super::*;

const TODAY: Date = Date::constant(2026, 3, 5);

fn sandbox(script: &str) -> ChildSandbox {
    ChildSandbox::new(Child {
        program: "/bin/sh".into(),
        leading: vec!["-c".into(), format!("printf '>'; {script}").into()],
        startup: Some(Duration::from_secs(60)),
        timeout: Duration::from_secs(1),
        output_limit: 1 << 20,
    })
}

fn render(script: &str) -> Result<String, TemplateError> {
    sandbox(script).render("{{ a }}", &json!({"a": 1}), TODAY)
}

#[test]
fn a_childs_end_is_a_prompt_or_a_reason() {
    assert_eq!(
        render(r#"cat > /dev/null; echo '{"Ok":"prompt"}'"#),
        Ok("prompt".into())
    );
    let raised = TemplateError::Render {
        line: 3,
        message: "roles must alternate".into(),
    };
    let printed = r#"{"Err":{"Render":{"line":3,"message":"roles must alternate"}}}"#;
    assert_eq!(render(&format!("echo '{printed}'")), Err(raised));
    for (script, reason) in [
        ("exec sleep 1000", "it took longer than 1 s"),
        ("kill -ABRT $$", "it crashed, or took too much memory"),
        ("exit 1", "it crashed, or took too much memory"),
        ("head -c 2000000 /dev/zero", "it wrote more than 1 MB"),
        ("kill -TERM $$", "its process was ended"),
    ] {
        let reason = reason.to_owned();
        assert_eq!(
            render(script),
            Err(TemplateError::Stopped { reason }),
            "{script}"
        );
    }
    for script in ["true", "echo nonsense"] {
        let error = render(script).expect_err("no prompt");
        assert!(error.to_string().contains("its process failed"), "{error}");
    }
}

#[test]
fn a_child_reads_template_variables_and_day() {
    let folder = tempfile::tempdir().expect("a folder");
    let heard = folder.path().join("heard.json");
    let script = format!("cat > {}; echo '{{\"Ok\":\"\"}}'", heard.display());
    let sandbox = sandbox(&script);
    let prompt = sandbox.render("{{ a }}", &json!({"a": "é"}), TODAY);
    assert_eq!(prompt, Ok(String::new()));
    let heard: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&heard).expect("read")).expect("JSON");
    let expected = json!({"source": "{{ a }}", "context": {"a": "é"}, "today": "2026-03-05"});
    assert_eq!(heard, expected);
    let own: OwnRequest = serde_json::from_value(heard).expect("as the child reads it");
    assert_eq!((&*own.source, own.today), ("{{ a }}", TODAY.to_string()));
}

#[test]
fn the_same_prompt_is_rendered_once_and_another_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let count = folder.path().join("count");
    let script = format!("echo >> {0}; echo '{{\"Ok\":\"prompt\"}}'", count.display());
    let sandbox = sandbox(&script);
    let runs = || std::fs::read(&count).map_or(0, |lines| lines.len());
    for (a, expected) in [(1, 1), (1, 1), (2, 2), (2, 2), (1, 3)] {
        let prompt = sandbox.render("{{ a }}", &json!({"a": a}), TODAY);
        assert_eq!(prompt, Ok("prompt".into()));
        assert_eq!(runs(), expected);
    }
    sandbox
        .render("{{ b }}", &json!({"a": 1}), TODAY)
        .expect("a prompt");
    let tomorrow = Date::constant(2026, 3, 6);
    sandbox
        .render("{{ b }}", &json!({"a": 1}), tomorrow)
        .expect("a prompt");
    assert_eq!(runs(), 5);
}
