//! Changes of the settings and the presets.

use store::{ChatId, ChatPreset, PresetId};

use crate::actor::state::ChatActor;
use crate::actor::undo::Revert;
use crate::failure::Failure;
use crate::preset::PresetContent;
use crate::preset::guidance::chat_preset;
use crate::preset::stored::{self, PresetRows};
use crate::settings::{Settings, validate_instructions};
use crate::text;
use crate::undo_stack::Change;
use crate::view::ChatEvent;

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
        let change = Change::new(label, None, revert);
        self.undo.record_step(names.join(", "), change);
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

    /// Saves a preset. A new one gets a free name; an existing preset cannot take another's name.
    pub(crate) fn save_preset(
        &mut self,
        id: Option<PresetId>,
        content: PresetContent,
    ) -> Result<PresetId, Failure> {
        let content = content.validated()?;
        let Some(id) = id else {
            return Ok(self.add_presets(vec![content])?.remove(0));
        };
        let Some(before) = stored::changed(&self.stores.disk, id, &content)? else {
            return Ok(id);
        };
        let label = format!("changed the preset “{}”", before.content.name);
        let revert = self.put_presets(vec![(id, Some(content.row(id)?))])?;
        let change = Change::new(label, None, revert);
        self.undo.record_step(format!("preset {}", id.0), change);
        Ok(id)
    }

    /// Adds all or none. A name that is taken gets a number.
    pub(crate) fn add_presets(
        &mut self,
        contents: Vec<PresetContent>,
    ) -> Result<Vec<PresetId>, Failure> {
        let added = stored::add(&self.stores.disk, contents)?;
        let label = match &added[..] {
            [(_, name)] => format!("added the preset “{name}”"),
            added => format!("added {} presets", added.len()),
        };
        let ids: Vec<PresetId> = added.into_iter().map(|(id, _)| id).collect();
        let revert = delete_added(&ids);
        self.record(label, None, revert);
        self.emit_presets();
        Ok(ids)
    }

    pub(crate) fn delete_preset(&mut self, id: PresetId) -> Result<(), Failure> {
        let what = format!("the preset “{}”", stored::get(&self.stores.disk, id)?.name);
        let revert = self.put_presets(vec![(id, None)])?;
        self.record(format!("deleted {what}"), None, revert);
        self.undo.set_removed(what);
        Ok(())
    }

    fn put_presets(&mut self, rows: PresetRows) -> Result<Revert, Failure> {
        let before = stored::put(&self.stores.disk, rows)?;
        self.ahead.forget_last();
        self.emit_presets();
        Ok(Revert::new(move |actor| actor.put_presets(before.clone())))
    }

    /// Chooses a preset and instructions for a chat, or for the next new one.
    pub(crate) fn choose_preset(
        &mut self,
        chat: Option<ChatId>,
        chosen: ChatPreset,
    ) -> Result<(), Failure> {
        validate_instructions(&chosen.instructions)?;
        let preset = chosen.preset.map(|id| stored::get(&self.stores.disk, id));
        let preset = preset.transpose()?;
        let before = chat_preset(&self.stores, &self.settings, chat)?;
        if before == chosen {
            return Ok(());
        }
        let title = match chat {
            Some(chat) => self.stores.chat(chat)?.title,
            None => "New chat".to_owned(),
        };
        let title = text::cut(&title, 40);
        let label = if before.preset == chosen.preset {
            format!("changed the instructions of “{title}”")
        } else if let Some(preset) = preset {
            format!("chose the preset “{}” for “{title}”", preset.name)
        } else {
            format!("chose no preset for “{title}”")
        };
        let merges = format!("{chat:?} {:?}", chosen.preset);
        let revert = self.set_chat_preset(chat, Some(chosen))?;
        let change = Change {
            of_new_chat: chat.is_none(),
            ..Change::new(label, chat, revert)
        };
        self.undo.record_step(merges, change);
        Ok(())
    }

    fn set_chat_preset(
        &mut self,
        chat: Option<ChatId>,
        chosen: Option<ChatPreset>,
    ) -> Result<Revert, Failure> {
        let before = stored::choose(&self.stores, chat, chosen.as_ref())?;
        self.ahead.forget_last();
        self.emit_chosen(chat)?;
        Ok(Revert::new(move |actor| {
            actor.set_chat_preset(chat, before.clone())
        }))
    }

    pub(super) fn emit_chosen(&self, chat: Option<ChatId>) -> Result<(), Failure> {
        let preset = self.stores.chosen_preset(chat)?;
        self.emit(ChatEvent::PresetChosen { chat, preset });
        Ok(())
    }

    pub(super) fn emit_presets(&self) {
        match stored::list(&self.stores.disk) {
            Ok(presets) => self.emit(ChatEvent::Presets { presets }),
            Err(error) => tracing::warn!(%error, "the presets could not be read"),
        }
    }
}

/// Reverts the addition of presets.
pub(super) fn delete_added(ids: &[PresetId]) -> Revert {
    let rows: PresetRows = ids.iter().map(|id| (*id, None)).collect();
    Revert::new(move |actor| actor.put_presets(rows.clone()))
}
