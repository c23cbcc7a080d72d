//! The one window: its label, its colours, its zoom, and bringing it before the others.

use tauri::window::Color;
use tauri::{AppHandle, Manager, Runtime, Theme, WebviewWindow};

/// The one window's label; capabilities/main.json grants to it.
pub const MAIN: &str = "main";

/// The page's grounds (`--ground` in the page's tokens), so that nothing flashes before it is drawn.
const LIGHT: Color = Color(0xfb, 0xf9, 0xf5, 0xff);
const DARK: Color = Color(0x16, 0x13, 0x10, 0xff);

/// Brings the window before the others, for a second start.
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

/// Gives the frame and the ground behind the page these colours; the page follows the frame.
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

/// Draws the page this large, in percent, as a browser does: in the same window there is room for less.
pub fn set_zoom<R: Runtime>(window: &WebviewWindow<R>, percent: u32) -> tauri::Result<()> {
    window.set_zoom(f64::from(percent) / 100.0)
}
