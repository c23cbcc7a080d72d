//! The commands of the local API.

use app::local_api::{ApiChange, ApiState, LocalApi};
use tauri::State;

use crate::reply::{Reply, blocking};

#[tauri::command]
#[cfg_attr(test, specta::specta)]
pub async fn api_state(api: State<'_, LocalApi>) -> Reply<ApiState> {
    let api = LocalApi::clone(&api);
    blocking(move || api.state()).await
}

/// Changes the settings of the local API. At the first switching on a key is made.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
pub async fn set_api(
    on: bool,
    port: u32,
    origins: Vec<String>,
    api: State<'_, LocalApi>,
) -> Reply<ApiChange> {
    let api = LocalApi::clone(&api);
    blocking(move || api.set(on, port, origins)).await?
}

/// Replaces the key of the local API.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
pub async fn replace_api_key(api: State<'_, LocalApi>) -> Reply<ApiChange> {
    let api = LocalApi::clone(&api);
    blocking(move || api.replace_key()).await?
}
