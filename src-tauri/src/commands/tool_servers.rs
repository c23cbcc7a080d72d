//! The commands of the tool servers.

use std::path::Path;
use std::sync::Arc;

use app::tool_servers::{ServerList, ToolServers};
use chat::Failure;
use mcp::{PastedServer, ServerConfig};
use tauri::State;

use crate::desktop::Desktop;
use crate::reply::{Reply, blocking};

/// Returns the tool servers. Values of their environments are empty.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
pub async fn list_servers(servers: State<'_, ToolServers>) -> Reply<ServerList> {
    let servers = ToolServers::clone(&servers);
    blocking(move || servers.list()).await?
}

/// Saves all tool servers. An empty value in an environment leaves the stored one.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
pub async fn save_servers(
    configs: Vec<ServerConfig>,
    servers: State<'_, ToolServers>,
) -> Reply<ServerList> {
    let servers = ToolServers::clone(&servers);
    blocking(move || servers.save(configs)).await?
}

/// Reads the servers in a JSON text of another app. Nothing is saved.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
pub async fn parse_servers(text: String) -> Reply<Vec<PastedServer>> {
    let parsed = blocking(move || mcp::parse_servers(&text)).await?;
    parsed.map_err(|error| Failure::other(error.to_string()))
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
pub async fn start_server(name: String, servers: State<'_, ToolServers>) -> Reply<()> {
    let servers = ToolServers::clone(&servers);
    blocking(move || servers.start_server(&name)).await
}

#[tauri::command]
#[cfg_attr(test, specta::specta)]
pub async fn stop_server(name: String, servers: State<'_, ToolServers>) -> Reply<()> {
    let servers = ToolServers::clone(&servers);
    blocking(move || servers.stop_server(&name)).await
}

/// Lets the user choose a folder for a tool server; none if the dialog was closed.
#[tauri::command]
#[cfg_attr(test, specta::specta)]
pub async fn pick_server_folder(desktop: State<'_, Arc<dyn Desktop>>) -> Reply<Option<String>> {
    let desktop = Arc::clone(&desktop);
    let folder = blocking(move || {
        let home = directories::UserDirs::new().map(|dirs| dirs.home_dir().to_owned());
        let from = home.as_deref().unwrap_or(Path::new("/"));
        desktop.pick_folder("Choose a folder for this server", from)
    });
    Ok(folder
        .await?
        .map(|folder| folder.to_string_lossy().into_owned()))
}
