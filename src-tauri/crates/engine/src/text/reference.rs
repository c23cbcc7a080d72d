//! Published templates with the renders that transformers makes of them. They lie outside of the repository; the tests
//! that need them are skipped where they are absent.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use testing::skip;

/// A published template.
pub(super) struct Published {
    pub source: String,
    pub cases: Vec<Case>,
}

/// A render of a template.
pub(super) struct Case {
    pub name: String,
    pub context: Value,
    pub rendered: String,
}

/// Returns a template with its renders; `None` if they are absent.
pub(super) fn published(template: &str, renders: &str) -> Option<Published> {
    let Some(folder) = folder() else {
        skip("no renders of published templates (shared/reference/template)");
        return None;
    };
    let read = |file: String| fs::read_to_string(folder.join(file)).expect("reference file");
    let cases: Vec<Value> =
        serde_json::from_str(&read(format!("{renders}.json"))).expect("reference cases");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let cases = cases.iter().map(|case| Case {
        name: text(&case["case"]),
        context: case["context"].clone(),
        rendered: text(&case["rendered"]),
    });
    Some(Published {
        source: read(format!("{template}.jinja")),
        cases: cases.collect(),
    })
}

/// The folder `shared/reference/template` beside the repository or one of its parents, or
/// `$GOLDCREST_REFERENCE/template`.
fn folder() -> Option<PathBuf> {
    let named = std::env::var_os("GOLDCREST_REFERENCE").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|folder| folder.join("shared/reference"));
    let mut roots = named.into_iter().chain(beside);
    roots.find_map(|root| Some(root.join("template")).filter(|path| path.is_dir()))
}
