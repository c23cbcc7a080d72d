//! The verbs of presets, and the guidance of a chat's answers.

use store::{ChatId, ChatPreset, DraftPlace, PresetId, PresetRow, Store, StoreError};

use crate::actor::state::ChatActor;
use crate::actor::undo::Revert;
use crate::failure::Failure;
use crate::preset::{MOST, Preset, PresetContent, free_name, guidance, same_name};
use crate::settings::validate_instructions;
use crate::text;
use crate::view::ChatEvent;

impl ChatActor {
    pub(crate) fn presets(&self) -> Result<Vec<Preset>, Failure> {
        let rows = self.stores.disk.presets().list()?;
        Ok(rows.into_iter().map(Preset::from).collect())
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
        let others = self.presets()?;
        let before = others
            .iter()
            .find(|preset| preset.id == id)
            .ok_or_else(missing)?;
        if before.content == content {
            return Ok(id);
        }
        let taken = others
            .iter()
            .find(|other| other.id != id && same_name(&other.content.name, &content.name));
        if let Some(other) = taken {
            return Err(Failure::other(format!(
                "There is a preset “{}” already. Choose another name.",
                other.content.name
            )));
        }
        let name = before.content.name.clone();
        let revert = self.put_presets(vec![(id, Some(content.row(id)?))])?;
        self.record_step(
            format!("preset {}", id.0),
            format!("changed the preset “{name}”"),
            revert,
        );
        Ok(id)
    }

    /// Adds all or none. A name that is taken gets a number.
    pub(crate) fn add_presets(
        &mut self,
        contents: Vec<PresetContent>,
    ) -> Result<Vec<PresetId>, Failure> {
        let mut names: Vec<String> = self
            .presets()?
            .into_iter()
            .map(|preset| preset.content.name)
            .collect();
        if names.len() + contents.len() > MOST {
            return Err(Failure::other(format!(
                "There can be {MOST} presets. Delete some first."
            )));
        }
        let added = self.stores.disk.transaction(|store| {
            let mut added = Vec::new();
            for content in contents {
                let content = content.validated()?;
                let name = free_name(&content.name, |name| {
                    names.iter().any(|taken| same_name(taken, name))
                });
                names.push(name.clone());
                let content = PresetContent { name, ..content };
                added.push(store.presets().add(&content.row(PresetId(0))?)?);
            }
            Ok::<_, Failure>(added)
        })?;
        let label = match &added[..] {
            [_] => format!("added the preset “{}”", names.pop().unwrap_or_default()),
            added => format!("added {} presets", added.len()),
        };
        let rows: Vec<_> = added.iter().map(|id| (*id, None)).collect();
        let revert = Revert::new(move |actor| actor.put_presets(rows.clone()));
        self.record(label, None, revert);
        self.emit_presets();
        Ok(added)
    }

    pub(crate) fn delete_preset(&mut self, id: PresetId) -> Result<(), Failure> {
        let row = self.stores.disk.presets().get(id)?.ok_or_else(missing)?;
        let revert = self.put_presets(vec![(id, None)])?;
        let what = format!("the preset “{}”", row.name);
        self.record(format!("deleted {what}"), None, revert);
        self.undo.set_removed(what);
        Ok(())
    }

    /// Writes presets, or deletes them (`None`). Chats keep the ids, so that a restored preset applies to them again.
    pub(super) fn put_presets(
        &mut self,
        rows: Vec<(PresetId, Option<PresetRow>)>,
    ) -> Result<Revert, Failure> {
        let before = self.stores.disk.transaction(|store| {
            let presets = store.presets();
            let put = rows.into_iter().map(|(id, row)| {
                let before = presets.get(id)?;
                match row {
                    Some(row) => presets.put(&row)?,
                    None => presets.delete(id)?,
                }
                Ok((id, before))
            });
            put.collect::<Result<Vec<_>, StoreError>>()
        })?;
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
        let preset = chosen.preset.map(|id| self.stores.disk.presets().get(id));
        let preset = preset.transpose()?.map(|row| row.ok_or_else(missing));
        let preset = preset.transpose()?;
        let before = self.chat_preset(chat)?;
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
        self.record_choice(merges, label, chat, revert);
        Ok(())
    }

    fn set_chat_preset(
        &mut self,
        chat: Option<ChatId>,
        chosen: Option<ChatPreset>,
    ) -> Result<Revert, Failure> {
        let place = self.stores.draft_place(chat)?;
        let presets = self.stores.at(place).presets();
        let before = presets.of(place)?;
        presets.choose(place, chosen.as_ref())?;
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

    /// Returns that choice, or the default.
    pub(super) fn chat_preset(&self, chat: Option<ChatId>) -> Result<ChatPreset, Failure> {
        guidance::chat_preset(&self.stores, &self.settings, chat)
    }

    /// Applies the choice for the next new chat to this one, and resets it. Within the transaction that creates the
    /// chat.
    pub(super) fn keep_chosen(&self, store: &Store, chat: ChatId) -> Result<(), Failure> {
        let chosen = self.chat_preset(None)?;
        let presets = store.presets();
        if chosen != ChatPreset::default() {
            presets.choose(DraftPlace::Chat(chat), Some(&chosen))?;
        }
        Ok(self
            .stores
            .disk
            .presets()
            .choose(DraftPlace::NewChat, None)?)
    }

    pub(super) fn emit_presets(&self) {
        match self.presets() {
            Ok(presets) => self.emit(ChatEvent::Presets { presets }),
            Err(error) => tracing::warn!(%error, "the presets could not be read"),
        }
    }
}

fn missing() -> Failure {
    Failure::other("This preset does not exist any more.")
}
