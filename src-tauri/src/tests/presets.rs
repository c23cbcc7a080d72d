//! Presets to a file and from one, and undo of settings.

use super::*;

fn preset(name: &str) -> Value {
    let sampling = json!({
        "temperature": 0.5, "topP": null, "topK": null, "minP": null, "repeatPenalty": null, "seed": null,
    });
    json!({ "name": name, "instructions": "Be brief.", "thinking": true, "sampling": sampling })
}

fn names(window: &Window) -> Vec<String> {
    let snapshot = window.invoke("snapshot", json!({})).expect("a snapshot");
    let presets = snapshot["presets"].as_array().cloned().unwrap_or_default();
    presets
        .iter()
        .map(|preset| preset["name"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn what_is_exported_can_be_imported_and_a_dialog_that_is_closed_changes_nothing() {
    let window = Window::open();
    let folder = tempfile::tempdir().expect("a folder");
    let pick = |name: &str| {
        let file = folder.path().join(name);
        *window.desktop.picks.lock().expect("not poisoned") = Some(file);
    };
    let arguments = json!({ "id": null, "preset": preset("Coder") });
    let id = window
        .invoke("save_preset", arguments)
        .expect("it is added");
    let export = || window.invoke("export_presets", json!({ "ids": [id.clone()] }));
    assert_eq!(export().expect("closed"), Value::Null);
    pick("coder.json");
    assert_eq!(export().expect("written"), json!("coder.json"));

    let import = || window.invoke("import_presets", json!({}));
    assert_eq!(import().expect("closed"), Value::Null);
    pick("coder.json");
    let imported = import().expect("read");
    assert_eq!(imported["leftOut"], json!([]));
    assert_eq!(names(&window), ["Coder", "Coder 2"]);

    std::fs::write(folder.path().join("wrong.json"), "{\"title\":\"A chat\"}").expect("written");
    pick("wrong.json");
    let refused = import().expect_err("it is no preset");
    let message = refused["message"].as_str().unwrap_or_default();
    assert!(
        message.starts_with("wrong.json was not imported. It is not"),
        "{message}"
    );
    assert_eq!(names(&window).len(), 2);
}

#[test]
fn a_setting_that_is_undone_is_so_for_the_window_too() {
    let window = Window::open();
    let mut settings =
        window.invoke("snapshot", json!({})).expect("a snapshot")["settings"].clone();
    settings["theme"] = json!("dark");
    settings["zoom"] = json!(150);
    settings["showStats"] = json!(true);
    settings["modelTitles"] = json!(true);
    let saved = window.invoke("save_settings", json!({ "settings": settings }));
    saved.expect("saved");
    let undone = window.invoke("undo", json!({})).expect("undone");
    assert_eq!(undone["label"], "changed 2 settings");
    assert_eq!(undone["settings"]["showStats"], false);
    assert_eq!(undone["settings"]["modelTitles"], false);
    // Each can be changed back where it is set.
    assert_eq!(undone["settings"]["theme"], "dark");
    let theme = *window.desktop.theme.lock().expect("not poisoned");
    let zoom = *window.desktop.zoom.lock().expect("not poisoned");
    assert_eq!((theme, zoom), (Some(chat::Theme::Dark), Some(150)));
    assert!(
        matches!(window.invoke("undo", json!({})), Ok(Value::Null)),
        "that was all"
    );
}
