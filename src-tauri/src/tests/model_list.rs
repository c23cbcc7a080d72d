//! The models page through Tauri's own dispatch.

use app::models::{ModelPlaces, Models};

use super::*;

/// Starts the models page over a data folder, with the `models` in it and nothing else of this computer.
pub fn start(chat: &Chat, events: &Events, data: &Path) -> Models {
    let (models, inbox) = Models::new();
    let places = ModelPlaces {
        data: data.to_owned(),
        hub: data.join("hub"),
        endpoint: "https://huggingface.co".into(),
        folders: Arc::new(|own| {
            let folders = own.iter().map(|path| ::models::SearchFolder {
                place: ::models::ModelPlace::Goldcrest,
                path: path.clone(),
                depth: 1,
            });
            folders.collect()
        }),
        bundled_model: None,
        fetch: Box::new(|| Err(std::io::ErrorKind::NotFound.into())),
        memory: Box::new(|_| Some(8 << 30)),
        bandwidth: |_| 40e9,
    };
    let settings = chat.snapshot().expect("a snapshot").settings;
    let to_page = events.clone();
    let started = inbox.start(&models, chat, settings, places, move |event| {
        to_page.send(event);
    });
    started.expect("a thread");
    models
}

#[test]
fn a_model_of_the_list_is_opened_shown_and_removed() {
    let window = Window::open();
    let folder = window._data.path().join("models");
    std::fs::create_dir_all(&folder).expect("made");
    let file = folder.join("mine.gguf");
    std::fs::copy(testing::tiny_model(), &file).expect("copied");
    let entry = || {
        let list = window.invoke("list_models", json!({})).expect("allowed");
        let entries = list["entries"].as_array().expect("entries").clone();
        entries
            .into_iter()
            .find(|entry| entry["file"] == json!(file))
    };
    until(|| entry().is_some(), "the file was not found");
    let entry_found = entry().expect("found");
    assert_eq!(entry_found["place"], "goldcrest");
    assert_eq!(entry_found["authenticity"], "unlisted");
    assert_eq!(entry_found["forecast"]["fit"], "fits");
    let id = json!({ "id": entry_found["id"] });

    window.invoke("open_model", id.clone()).expect("allowed");
    let asked = || window.model.asked.lock().expect("not poisoned").clone();
    let choice = ModelChoice::File(file.clone());
    until(|| asked().contains(&choice), "the file was not opened");
    window.invoke("show_model", id.clone()).expect("allowed");
    assert_eq!(
        window.desktop.opened.lock().expect("not poisoned").last(),
        Some(&file.display().to_string())
    );
    window.invoke("remove_model", id.clone()).expect("allowed");
    assert_eq!(
        *window.desktop.trashed.lock().expect("not poisoned"),
        std::slice::from_ref(&file)
    );
    until(|| entry().is_none(), "it is still listed");
    for command in [
        "open_model",
        "show_model",
        "remove_model",
        "check_model",
        "get_model",
    ] {
        let error = window.invoke(command, id.clone()).expect_err("it is gone");
        assert_eq!(error["code"], "other", "{command}");
    }
    let known = json!({ "id": "SmolLM3-Q4_K_M.gguf" });
    let error = window
        .invoke("get_model", known)
        .expect_err("there is no program");
    assert!(
        error["message"].to_string().contains("did not start"),
        "{error}"
    );
    assert_eq!(
        window.invoke("pick_download_folder", json!({})),
        Ok(Value::Null)
    );
    *window.desktop.picks.lock().expect("not poisoned") = Some(folder.clone());
    assert_eq!(
        window.invoke("pick_download_folder", json!({})),
        Ok(json!(folder))
    );
}
