//! The window: its appearance before the page is loaded, its position, and its restrictions.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use app::folders;
use app::folders::Folders;
use app::wire::ShellEvent;
use chat::{Chat, WindowRow};
use system::private;
use tauri::webview::NewWindowResponse;
use tauri::{
    AppHandle, DragDropEvent, Manager, Monitor, PhysicalPosition, PhysicalRect, PhysicalSize,
    Runtime, Url, WebviewUrl, WebviewWindow, WebviewWindowBuilder, WindowEvent,
};
use tempfile::TempDir;

use crate::desktop::Desktop;
use crate::events::Events;
use crate::main_window::{MAIN, set_theme, set_zoom};
use crate::{given_files, instance};

const SIZE: (f64, f64) = (1100.0, 760.0);
const SMALLEST: (f64, f64) = (420.0, 400.0);
/// About the height of a title bar, in logical pixels.
const TITLE_BAR: f64 = 40.0;

/// Opens the window at its last position, if the store could be read.
pub fn open<R: Runtime>(app: &AppHandle<R>, folders: &Folders) -> tauri::Result<()> {
    let mut window = WebviewWindowBuilder::new(app, MAIN, WebviewUrl::default())
        .title("Goldcrest")
        .inner_size(SIZE.0, SIZE.1)
        .min_inner_size(SMALLEST.0, SMALLEST.1)
        .visible(false)
        .on_navigation(is_own)
        .on_new_window(|url, _| {
            tracing::warn!(scheme = url.scheme(), "blocked a new window");
            NewWindowResponse::Deny
        });
    match web_view_folder(app, folders) {
        Ok(folder) => window = window.data_directory(folder),
        Err(error) => tracing::warn!("no separate folder for the web view: {error}"),
    }
    // A page in development comes from Vite.
    if !tauri::is_dev() {
        window = window.proxy_url(nowhere()?);
    }
    let window = window.build()?;
    let chat = app.try_state::<Chat>();
    let settings = chat.as_deref().map(settings_of).unwrap_or_default();
    set_theme(&window, settings.theme)?;
    set_zoom(&window, settings.zoom)?;
    match chat {
        Some(chat) => put_in_place(&window, &chat)?,
        None => fit(&window)?,
    }
    window.show()
}

/// Applies the user's settings and the last position to a window that was opened before the store.
pub fn arrange<R: Runtime>(app: &AppHandle<R>, chat: &Chat) {
    let settings = settings_of(chat);
    let desktop = app.state::<Arc<dyn Desktop>>();
    desktop.set_theme(settings.theme);
    desktop.set_zoom(settings.zoom);
    let placed = app
        .get_webview_window(MAIN)
        .map(|window| put_in_place(&window, chat));
    if let Some(Err(error)) = placed {
        tracing::warn!("could not restore the window position: {error}");
    }
}

/// Moves the window to its last position, if that is known.
fn put_in_place<R: Runtime>(window: &WebviewWindow<R>, chat: &Chat) -> tauri::Result<()> {
    match chat.window(MAIN) {
        Ok(Some(row)) => place(window, row),
        Ok(None) => fit(window),
        Err(error) => {
            tracing::warn!("unknown window position: {error}");
            fit(window)
        }
    }
}

/// Folder of the web view if the data folder is not writable.
struct TemporaryFolder(Mutex<Option<TempDir>>);

/// Returns the web view's folder. If the data folder is not writable, the window that reports it needs another one.
fn web_view_folder<R: Runtime>(app: &AppHandle<R>, folders: &Folders) -> io::Result<PathBuf> {
    let folder = folders.web_view();
    if folders::fault(folders).is_none() && private::folder(&folder).is_ok() {
        return Ok(folder);
    }
    let temporary = temporary_folder(&std::env::temp_dir())?;
    let folder = temporary.path().to_owned();
    app.manage(TemporaryFolder(Mutex::new(Some(temporary))));
    Ok(folder)
}

/// Creates a folder in a shared one: its name is unpredictable, and it is private to this user.
fn temporary_folder(parent: &Path) -> io::Result<TempDir> {
    let mut new = tempfile::Builder::new();
    new.prefix("goldcrest-webview-");
    #[cfg(unix)]
    new.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    new.tempdir_in(parent)
}

/// Removes the folder at the end of the app.
pub fn remove_temporary_folder<R: Runtime>(app: &AppHandle<R>) {
    let Some(folder) = app.try_state::<TemporaryFolder>() else {
        return;
    };
    let folder = folder
        .0
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    if let Some(Err(error)) = folder.map(TempDir::close) {
        tracing::warn!("could not remove the web view's temporary folder: {error}");
    }
}

/// Returns the user's settings; the defaults if they cannot be read.
fn settings_of(chat: &Chat) -> chat::Settings {
    chat.snapshot()
        .map(|snapshot| snapshot.settings)
        .unwrap_or_default()
}

/// Returns the proxy of the web view, which leads nowhere, so that neither names nor connections leave it: a content
/// security policy does not refuse `preconnect`. No program of a user can listen on a port so low, and nothing does on
/// this one. The app's own page and commands bypass the proxy.
fn nowhere() -> tauri::Result<Url> {
    "http://127.0.0.1:9"
        .parse()
        .map_err(tauri::Error::InvalidUrl)
}

/// Saves the position of the window, if it still exists.
pub fn leave<R: Runtime>(app: &AppHandle<R>) {
    let kept = app.get_webview_window(MAIN).map(|window| remember(&window));
    if let Some(Err(error)) = kept {
        tracing::warn!("could not save the window position: {error}");
    }
}

/// Handles events of the window.
pub fn on_event<R: Runtime>(window: &tauri::Window<R>, event: &WindowEvent) {
    match event {
        WindowEvent::CloseRequested { .. } => {
            instance::withdraw(window.app_handle());
            leave(window.app_handle());
        }
        WindowEvent::DragDrop(event) => on_drag(window, event),
        _ => {}
    }
}

/// Handles a file that is dragged over the window and dropped: a model to open, or chats to import.
fn on_drag<R: Runtime>(window: &tauri::Window<R>, event: &DragDropEvent) {
    let over = match event {
        DragDropEvent::Enter { .. } => true,
        DragDropEvent::Drop { .. } | DragDropEvent::Leave => false,
        _ => return,
    };
    window.state::<Events>().send(ShellEvent::Dragging { over });
    let DragDropEvent::Drop { paths, .. } = event else {
        return;
    };
    given_files::take_drop(window.app_handle(), paths.clone());
}

/// Returns whether an address is of the app's own page: nothing else is shown in the window.
fn is_own(url: &Url) -> bool {
    let own = match url.scheme() {
        "tauri" => url.host_str() == Some("localhost"),
        // Windows serves the page at this address; a development build serves it at Vite's.
        "http" | "https" => {
            (cfg!(windows) && url.host_str() == Some("tauri.localhost"))
                || (tauri::is_dev() && url.host_str() == Some("localhost"))
        }
        _ => false,
    };
    if !own {
        // The address itself may be from a chat.
        tracing::warn!(scheme = url.scheme(), "blocked a navigation");
    }
    own
}

/// Keeps a window without a saved position within the screen, which may be smaller than its usual size.
fn fit<R: Runtime>(window: &WebviewWindow<R>) -> tauri::Result<()> {
    let monitor = match window.primary_monitor()? {
        Some(monitor) => Some(monitor),
        None => window.available_monitors()?.into_iter().next(),
    };
    let Some(monitor) = monitor else {
        return Ok(());
    };
    let (width, height) = (
        SIZE.0 * monitor.scale_factor(),
        SIZE.1 * monitor.scale_factor(),
    );
    let room = room_on(&monitor);
    let (width, height) = (
        width.min(f64::from(room.size.width)),
        height.min(f64::from(room.size.height)),
    );
    window.set_size(PhysicalSize::new(width as u32, height as u32))
}

/// Returns the usable area of a screen, below the title bar, whose height is unknown.
fn room_on(monitor: &Monitor) -> PhysicalRect<i32, u32> {
    let mut room = *monitor.work_area();
    let bar = (TITLE_BAR * monitor.scale_factor()) as u32;
    room.size.height = room.size.height.saturating_sub(bar);
    room
}

/// Moves the window to the position in `row`, if there is still a screen with room for it.
fn place<R: Runtime>(window: &WebviewWindow<R>, row: WindowRow) -> tauri::Result<()> {
    match window.monitor_from_point(f64::from(row.x), f64::from(row.y))? {
        Some(monitor) => {
            let row = within(row, room_on(&monitor));
            window.set_size(PhysicalSize::new(row.width, row.height))?;
            window.set_position(PhysicalPosition::new(row.x, row.y))?;
        }
        None => {
            window.set_size(PhysicalSize::new(row.width, row.height))?;
            fit(window)?;
        }
    }
    if row.maximised {
        window.maximize()?;
    }
    Ok(())
}

/// Shrinks and moves a window into `room`.
fn within(row: WindowRow, room: PhysicalRect<i32, u32>) -> WindowRow {
    let width = row.width.min(room.size.width);
    let height = row.height.min(room.size.height);
    let inside = |at: i32, from: i32, free: u32| {
        let last = from.saturating_add(i32::try_from(free).unwrap_or(i32::MAX));
        at.clamp(from, last.max(from))
    };
    WindowRow {
        x: inside(row.x, room.position.x, room.size.width - width),
        y: inside(row.y, room.position.y, room.size.height - height),
        width,
        height,
        ..row
    }
}

/// Saves the position of the window. While it fills the screen, that is its restored position.
fn remember<R: Runtime>(window: &WebviewWindow<R>) -> tauri::Result<()> {
    let Some(chat) = window.try_state::<Chat>() else {
        return Ok(());
    };
    let maximised = window.is_maximized()?;
    let before = chat.window(MAIN).ok().flatten();
    let row = match before.filter(|_| maximised) {
        Some(before) => WindowRow {
            maximised,
            ..before
        },
        None => {
            let (position, size) = (window.outer_position()?, window.inner_size()?);
            WindowRow {
                x: position.x,
                y: position.y,
                width: size.width,
                height: size.height,
                maximised,
            }
        }
    };
    chat.save_window(MAIN, row)
        .map_err(|error| tauri::Error::Anyhow(error.into()))
}

#[cfg(test)]
mod tests {
    use tauri::test::{mock_builder, mock_context, noop_assets};

    use super::*;

    #[test]
    fn the_page_cannot_leave() {
        for (url, own) in [
            ("tauri://localhost/", true),
            ("tauri://localhost/index.html#x", true),
            ("tauri://elsewhere/", false),
            ("http://tauri.localhost/", cfg!(windows)),
            ("http://localhost:5173/", tauri::is_dev()),
            ("http://example.org/", false),
            ("https://tauri.localhost.example.org/", false),
            ("file:///etc/passwd", false),
            ("data:text/html,x", false),
        ] {
            assert_eq!(is_own(&url.parse().expect("an address")), own, "{url}");
        }
    }

    #[test]
    fn a_window_that_cannot_write_beside_the_chats_has_a_private_folder_until_the_end() {
        let home = tempfile::tempdir().expect("made");
        let data = home.path().join("data");
        let app = mock_builder()
            .build(mock_context(noop_assets()))
            .expect("built");
        let folders = Folders { data: data.clone() };
        let usual = web_view_folder(app.handle(), &folders).expect("made");
        assert_eq!(usual, data.join("webview"));
        remove_temporary_folder(app.handle());
        assert!(usual.exists());
        // The web view creates files and folders in it that others may read: behind this one they cannot.
        #[cfg(unix)]
        for opened in [0o755, 0o777] {
            use std::os::unix::fs::PermissionsExt;
            let open = std::fs::Permissions::from_mode(opened);
            std::fs::set_permissions(&usual, open).expect("set");
            web_view_folder(app.handle(), &folders).expect("there");
            let mode = usual.metadata().expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }

        std::fs::remove_dir_all(&data).expect("removed");
        std::fs::write(&data, "a file in the folder's place").expect("written");
        let other = web_view_folder(app.handle(), &folders).expect("made");
        assert!(other.starts_with(std::env::temp_dir()));
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::mode(
                &other.metadata().expect("made").permissions(),
            );
            assert_eq!(mode & 0o777, 0o700);
        }
        std::fs::write(other.join("cookies"), "").expect("written");
        remove_temporary_folder(app.handle());
        assert!(!other.exists());
    }

    #[test]
    fn a_window_stays_within_its_screen() {
        let room = PhysicalRect {
            position: PhysicalPosition::new(100, 30),
            size: PhysicalSize::new(1366, 700),
        };
        let row = |x, y, width, height| WindowRow {
            x,
            y,
            width,
            height,
            maximised: false,
        };
        for (kept, shown) in [
            (row(200, 50, 800, 500), row(200, 50, 800, 500)),
            (row(900, 600, 800, 500), row(666, 230, 800, 500)),
            (row(-50, 0, 800, 500), row(100, 30, 800, 500)),
            (row(200, 50, 2200, 1520), row(100, 30, 1366, 700)),
        ] {
            assert_eq!(within(kept, room), shown);
        }
    }

    #[test]
    fn no_temporary_folder_is_one_that_was_there() {
        let shared = tempfile::tempdir().expect("made");
        let first = temporary_folder(shared.path()).expect("made");
        let second = temporary_folder(shared.path()).expect("made");
        assert_ne!(first.path(), second.path());
    }
}
