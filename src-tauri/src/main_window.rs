//! The one window: its label, its colours, its zoom, and raising it.

use tauri::window::Color;
use tauri::{AppHandle, Manager, Runtime, Theme, WebviewWindow};

/// The one window's label; capabilities/main.json grants to it.
pub const MAIN: &str = "main";

/// Backgrounds of the page (`--ground` in the page's tokens), so that nothing flashes before it is drawn.
const LIGHT: Color = Color(0xfb, 0xf9, 0xf5, 0xff);
const DARK: Color = Color(0x16, 0x13, 0x10, 0xff);

/// Raises the window, for a second start.
pub fn bring_forward<R: Runtime>(app: &AppHandle<R>) {
    let Some(window) = app.get_webview_window(MAIN) else {
        return;
    };
    for step in [window.unminimize(), window.show(), window.set_focus()] {
        if let Err(error) = step {
            tracing::warn!("the window could not be raised: {error}");
        }
    }
}

/// Sets the colours of the frame and the background of the page; the page follows the frame.
pub fn set_theme<R: Runtime>(window: &WebviewWindow<R>, theme: chat::Theme) -> tauri::Result<()> {
    window.set_theme(match theme {
        chat::Theme::System => None,
        chat::Theme::Light => Some(Theme::Light),
        chat::Theme::Dark => Some(Theme::Dark),
    })?;
    let is_dark = match theme {
        chat::Theme::System => window.theme()? == Theme::Dark,
        chat::Theme::Light => false,
        chat::Theme::Dark => true,
    };
    window.set_background_color(Some(if is_dark { DARK } else { LIGHT }))
}

/// Sets the zoom of the page in percent, as a browser does: less fits into the same window.
pub fn set_zoom<R: Runtime>(window: &WebviewWindow<R>, percent: u32) -> tauri::Result<()> {
    window.set_zoom(f64::from(percent) / 100.0)
}
