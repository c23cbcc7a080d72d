//! Interpretation of a child's end for a prompt. The children are lines of shell; tests/hostile.rs has the real one.

#![cfg(unix)]

use std::fs;

use serde_json::json;
use tempfile::TempDir;

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
        render(r#"cat > /dev/null; echo '[{"Ok":"prompt"}]'"#),
        Ok("prompt".into())
    );
    let raised = TemplateError::Render {
        line: 3,
        message: "roles must alternate".into(),
    };
    let printed = r#"[{"Err":{"Render":{"line":3,"message":"roles must alternate"}}}]"#;
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
    for script in ["true", "echo nonsense", "echo '[]'"] {
        let error = render(script).expect_err("no prompt");
        assert!(error.to_string().contains("its process failed"), "{error}");
    }
    let missing = ChildSandbox::new(Child {
        program: "/nonexistent/goldcrest".into(),
        ..sandbox("").child
    });
    let error = missing
        .render("", &json!({}), TODAY)
        .expect_err("no prompt")
        .to_string();
    assert!(
        error.contains("its process could not be started"),
        "{error}"
    );
}

/// Makes a child that writes its input to the file `request`, a line to the file `runs`, and these results.
fn noting(results: &str) -> (TempDir, ChildSandbox) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().display();
    let script = format!("cat > '{path}/request'; echo >> '{path}/runs'; echo '{results}'");
    (folder, sandbox(&script))
}

fn runs(folder: &TempDir) -> usize {
    fs::read(folder.path().join("runs")).map_or(0, |lines| lines.len())
}

#[test]
fn a_child_reads_template_variables_and_day() {
    let (folder, sandbox) = noting(r#"[{"Ok":""}]"#);
    let prompt = sandbox.render("{{ a }}", &json!({"a": "é"}), TODAY);
    assert_eq!(prompt, Ok(String::new()));
    let request = fs::read(folder.path().join("request")).expect("read");
    let request: serde_json::Value = serde_json::from_slice(&request).expect("JSON");
    let expected = json!({"source": "{{ a }}", "contexts": [{"a": "é"}], "today": "2026-03-05"});
    assert_eq!(request, expected);
    let own: OwnRequest = serde_json::from_value(request).expect("as the child reads it");
    assert_eq!((&*own.source, own.today), ("{{ a }}", TODAY.to_string()));
}

#[test]
fn the_same_prompt_is_rendered_once_and_another_again() {
    let (folder, sandbox) = noting(r#"[{"Ok":"prompt"}]"#);
    for (a, expected) in [(1, 1), (1, 1), (2, 2), (2, 2), (1, 3)] {
        let prompt = sandbox.render("{{ a }}", &json!({"a": a}), TODAY);
        assert_eq!(prompt, Ok("prompt".into()));
        assert_eq!(runs(&folder), expected);
    }
    let tomorrow = Date::constant(2026, 3, 6);
    for day in [TODAY, tomorrow] {
        let prompt = sandbox.render("{{ b }}", &json!({"a": 1}), day);
        assert_eq!(prompt, Ok("prompt".into()));
    }
    assert_eq!(runs(&folder), 5);
}

#[test]
fn several_contexts_are_one_child_and_one_deadline() {
    let contexts = [json!({"a": 1}), json!({"a": 2})];
    let raised = TemplateError::Syntax {
        line: 1,
        message: "no".into(),
    };
    let printed = r#"[{"Ok":"1"},{"Err":{"Syntax":{"line":1,"message":"no"}}}]"#;
    let (folder, sandbox) = noting(printed);
    let rendered = sandbox.render_each("{{ a }}", &contexts, TODAY);
    assert_eq!(rendered, [Ok("1".into()), Err(raised)]);
    assert_eq!(runs(&folder), 1);

    let hangs = self::sandbox("exec sleep 1000");
    let reason = "it took longer than 1 s".to_owned();
    let stopped = Err(TemplateError::Stopped { reason });
    let rendered = hangs.render_each("{{ a }}", &contexts, TODAY);
    assert_eq!(rendered, [stopped.clone(), stopped]);
}
