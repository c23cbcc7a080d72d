//! Relocation of a database whose folder has moved together with models.

use std::path::{Path, PathBuf};

use store::Store;

use crate::failure::Failure;
use crate::model_host::ModelChoice;
use crate::model_slot::MODEL;
use crate::settings::DOWNLOAD_FOLDER;

/// Rewrites the paths of the startup model and of the download folder in a closed database. `moved` returns the new
/// location of a path, if it has one.
pub fn relocate(database: &Path, moved: &dyn Fn(&Path) -> Option<PathBuf>) -> Result<(), Failure> {
    let store = Store::open(database)?;
    store.transaction(|store| {
        let settings = store.settings();
        let model = settings.get(MODEL)?;
        if let Some(Ok(ModelChoice::File(file))) = model.map(serde_json::from_value)
            && let Some(file) = moved(&file)
            && let Ok(choice) = serde_json::to_value(ModelChoice::File(file))
        {
            settings.set(MODEL, &choice)?;
        }
        let folder = settings.get(DOWNLOAD_FOLDER)?;
        if let Some(folder) = folder.as_ref().and_then(|row| row.as_str())
            && let Some(folder) = moved(Path::new(folder))
            && let Some(folder) = folder.to_str()
        {
            settings.set(DOWNLOAD_FOLDER, &folder.into())?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_in_the_folder_is_named_where_it_is_now() -> Result<(), Box<dyn std::error::Error>> {
        let home = tempfile::tempdir()?;
        let database = home.path().join("goldcrest.db");
        let moved = |path: &Path| Some(Path::new("/new").join(path.strip_prefix("/old").ok()?));
        for (rows, now) in [
            (
                [
                    json!({ "file": "/old/models/a.gguf" }),
                    json!("/old/models"),
                ],
                [
                    json!({ "file": "/new/models/a.gguf" }),
                    json!("/new/models"),
                ],
            ),
            (
                [json!({ "file": "/older/a.gguf" }), json!("/older")],
                [json!({ "file": "/older/a.gguf" }), json!("/older")],
            ),
            (
                [json!("demomodel"), json!(null)],
                [json!("demomodel"), json!(null)],
            ),
        ] {
            let store = Store::open(&database)?;
            for (key, row) in [MODEL, DOWNLOAD_FOLDER].into_iter().zip(rows) {
                store.settings().set(key, &row)?;
            }
            drop(store);
            relocate(&database, &moved)?;
            let store = Store::open(&database)?;
            for (key, row) in [MODEL, DOWNLOAD_FOLDER].into_iter().zip(now) {
                assert_eq!(store.settings().get(key)?, Some(row));
            }
        }
        Ok(())
    }
}
