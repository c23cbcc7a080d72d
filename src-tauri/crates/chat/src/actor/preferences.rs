//! Changes of the settings.

use crate::actor::state::ChatActor;
use crate::actor::undo::Revert;
use crate::failure::Failure;
use crate::settings::Settings;

impl ChatActor {
    pub(crate) fn save_settings(&mut self, settings: Settings) -> Result<Settings, Failure> {
        settings.validate()?;
        // These can be changed back where they are set, and undo is about the chats.
        let look = Settings {
            theme: settings.theme,
            zoom: settings.zoom,
            ..self.settings.clone()
        };
        if look != self.settings {
            self.set_settings(look)?;
        }
        let names = self.settings.names_of_changes(&settings);
        let label = match names[..] {
            [] => return Ok(self.settings.clone()),
            [name] => format!("changed “{name}”"),
            _ => format!("changed {} settings", names.len()),
        };
        let revert = self.set_settings(settings)?;
        self.record_step(names.join(", "), label, revert);
        Ok(self.settings.clone())
    }

    fn set_settings(&mut self, settings: Settings) -> Result<Revert, Failure> {
        settings.write(&self.stores.disk)?;
        let before = std::mem::replace(&mut self.settings, settings);
        if before.load_options() != self.settings.load_options() {
            self.reopen_model();
        }
        let changed = before.changed_in(&self.settings);
        Ok(Revert::new(move |actor| {
            actor.set_settings(actor.settings.with(changed.clone())?)
        }))
    }
}
