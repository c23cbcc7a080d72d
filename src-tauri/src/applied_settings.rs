//! Settings that take effect at once.

use std::sync::Arc;

use app::models::Models;
use chat::Settings;

use crate::desktop::Desktop;

/// Passes the settings to the parts that do not query them.
pub fn follow(settings: &Settings, models: &Models, desktop: &Arc<dyn Desktop>) {
    models.settings_changed(settings.clone());
    desktop.set_theme(settings.theme);
    desktop.set_zoom(settings.zoom);
}
