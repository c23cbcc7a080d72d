//! The presets in the store, and the choice of one for a chat. Chats keep the id of a deleted preset, so that a restored
//! one applies to them again.

use store::{ChatId, ChatPreset, DraftPlace, PresetId, PresetRow, Store, StoreError};

use crate::failure::Failure;
use crate::preset::{MOST, Preset, PresetContent, free_name, same_name};
use crate::stores::Stores;

/// Rows of presets; `None` for one that is not there.
pub(crate) type PresetRows = Vec<(PresetId, Option<PresetRow>)>;

pub(crate) fn list(store: &Store) -> Result<Vec<Preset>, StoreError> {
    let rows = store.presets().list()?;
    Ok(rows.into_iter().map(Preset::from).collect())
}

pub(crate) fn get(store: &Store, id: PresetId) -> Result<PresetRow, Failure> {
    let row = store.presets().get(id)?;
    row.ok_or_else(|| Failure::other("This preset does not exist any more."))
}

/// Returns the preset whose content this would change; `None` if it has it. An existing preset cannot take another's
/// name.
pub(crate) fn changed(
    store: &Store,
    id: PresetId,
    content: &PresetContent,
) -> Result<Option<Preset>, Failure> {
    let before = Preset::from(get(store, id)?);
    if before.content == *content {
        return Ok(None);
    }
    let taken = |other: &Preset| other.id != id && same_name(&other.content.name, &content.name);
    match list(store)?.into_iter().find(taken) {
        Some(other) => Err(Failure::other(format!(
            "There is a preset “{}” already. Choose another name.",
            other.content.name
        ))),
        None => Ok(Some(before)),
    }
}

/// Adds all or none. A name that is taken gets a number.
pub(crate) fn add(
    store: &Store,
    contents: Vec<PresetContent>,
) -> Result<Vec<(PresetId, String)>, Failure> {
    let here = list(store)?.into_iter();
    let mut names: Vec<String> = here.map(|preset| preset.content.name).collect();
    if names.len() + contents.len() > MOST {
        return Err(Failure::other(format!(
            "There can be {MOST} presets. Delete some first."
        )));
    }
    store.transaction(|store| {
        let mut added = Vec::new();
        for content in contents {
            let content = content.validated()?;
            let is_taken = |name: &str| names.iter().any(|taken| same_name(taken, name));
            let name = free_name(&content.name, is_taken);
            names.push(name.clone());
            let mut row = content.row(PresetId(0))?;
            row.name.clone_from(&name);
            added.push((store.presets().add(&row)?, name));
        }
        Ok(added)
    })
}

/// Writes presets, or deletes them (`None`). Returns what was there before.
pub(crate) fn put(store: &Store, rows: PresetRows) -> Result<PresetRows, StoreError> {
    store.transaction(|store| {
        let presets = store.presets();
        let put = rows.into_iter().map(|(id, row)| {
            let before = presets.get(id)?;
            match row {
                Some(row) => presets.put(&row)?,
                None => presets.delete(id)?,
            }
            Ok((id, before))
        });
        put.collect()
    })
}

/// Sets the choice for a chat, or for the next new one. Returns the choice before.
pub(crate) fn choose(
    stores: &Stores,
    chat: Option<ChatId>,
    chosen: Option<&ChatPreset>,
) -> Result<Option<ChatPreset>, StoreError> {
    let place = stores.draft_place(chat)?;
    let before = stores.chosen_preset(chat)?;
    stores.at(place).presets().choose(place, chosen)?;
    Ok(before)
}

/// Applies a choice to a new chat of this store, unless it is that of a chat without one. Within a transaction.
pub(crate) fn begin_with(
    store: &Store,
    chat: ChatId,
    chosen: &ChatPreset,
) -> Result<(), StoreError> {
    if *chosen == ChatPreset::default() {
        return Ok(());
    }
    store.presets().choose(DraftPlace::Chat(chat), Some(chosen))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::SamplingSettings;

    fn named(name: &str) -> PresetContent {
        PresetContent {
            name: name.to_owned(),
            instructions: String::new(),
            thinking: None,
            sampling: SamplingSettings::default(),
            tools: None,
        }
    }

    #[test]
    fn presets_are_added_under_free_names_all_or_none() -> Result<(), Failure> {
        let store = Store::in_memory()?;
        let added = add(&store, vec![named("Terse"), named("terse")])?;
        assert_eq!((&*added[0].1, &*added[1].1), ("Terse", "terse 2"));
        assert!(add(&store, vec![named("Kind"), named("")]).is_err());
        let many = (0..MOST - 1).map(|number| named(&number.to_string()));
        assert!(add(&store, many.collect()).is_err());
        assert_eq!(list(&store)?.len(), 2);
        Ok(())
    }

    #[test]
    fn a_preset_cannot_take_the_name_of_another() -> Result<(), Failure> {
        let store = Store::in_memory()?;
        let (id, _) = add(&store, vec![named("Terse"), named("Kind")])?[0];
        assert_eq!(changed(&store, id, &named("Terse"))?, None);
        assert!(changed(&store, id, &named("TERSE"))?.is_some());
        assert!(changed(&store, id, &named("KIND")).is_err());
        assert!(changed(&store, PresetId(9), &named("Rhyming")).is_err());
        Ok(())
    }

    #[test]
    fn what_was_there_before_a_change_restores_it() -> Result<(), Failure> {
        let store = Store::in_memory()?;
        let (id, _) = add(&store, vec![named("Terse")])?[0];
        let deleted = put(&store, vec![(id, None)])?;
        assert!(get(&store, id).is_err());
        assert_eq!(put(&store, deleted)?, [(id, None)]);
        assert_eq!(get(&store, id)?.name, "Terse");
        Ok(())
    }
}
