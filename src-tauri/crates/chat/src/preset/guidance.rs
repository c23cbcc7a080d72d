//! Instructions and sampling of a chat's answers, from its own choice, its preset and the settings.

use store::{ChatId, ChatPreset};

use crate::failure::Failure;
use crate::preset::Preset;
use crate::settings::{SamplingSettings, Settings};
use crate::stores::Stores;

/// Parameters of an answer, beside the messages.
pub(crate) struct Guidance {
    pub instructions: String,
    pub sampling: SamplingSettings,
    /// Names of the tools that are on.
    pub tools: Vec<String>,
}

impl Guidance {
    /// Resolves the guidance of a chat, or of the next new one. Precedence of instructions: the chat's, the preset's,
    /// the settings'; of the tools likewise; of each sampling value: the preset's, then the settings'.
    pub fn of(
        stores: &Stores,
        settings: &Settings,
        chat: Option<ChatId>,
    ) -> Result<Guidance, Failure> {
        let chosen = chat_preset(stores, settings, chat)?;
        let row = chosen.preset.map(|id| stores.disk.presets().get(id));
        let preset = row.transpose()?.flatten();
        let preset = preset.map(|row| Preset::from(row).content);
        let of_preset = preset.as_ref().map(|preset| &preset.instructions);
        let instructions = [
            Some(&chosen.instructions),
            of_preset,
            Some(&settings.instructions),
        ];
        let mut instructions = instructions.into_iter().flatten().map(|text| text.trim());
        let instructions = instructions.find(|text| !text.is_empty());
        let instructions = instructions.unwrap_or_default().to_owned();
        let sampling = preset.as_ref().map(|preset| preset.sampling);
        let tools = chosen
            .tools
            .or(preset.as_ref().and_then(|preset| preset.tools.clone()));
        Ok(Guidance {
            instructions,
            sampling: sampling.unwrap_or_default().or(settings.sampling_changes),
            tools: tools.unwrap_or_else(|| settings.tools.clone()),
        })
    }
}

/// Returns the choice for a chat, or for the next new one, or the default.
pub(crate) fn chat_preset(
    stores: &Stores,
    settings: &Settings,
    chat: Option<ChatId>,
) -> Result<ChatPreset, Failure> {
    let usual = || ChatPreset {
        preset: settings.default_preset.filter(|_| chat.is_none()),
        instructions: String::new(),
        tools: None,
    };
    Ok(stores.chosen_preset(chat)?.unwrap_or_else(usual))
}

#[cfg(test)]
mod tests {
    use store::{DraftPlace, PresetId, Store};

    use super::*;
    use crate::preset::PresetContent;

    #[test]
    fn the_chat_goes_before_the_preset_and_that_before_the_settings() -> Result<(), Failure> {
        let stores = Stores::new(Store::in_memory()?)?;
        let sampling = |temperature, top_k| SamplingSettings {
            temperature,
            top_k,
            ..SamplingSettings::default()
        };
        let settings = Settings {
            instructions: " Be kind. ".to_owned(),
            sampling_changes: sampling(Some(0.5), Some(30)),
            ..Settings::default()
        };
        let chat = stores.temporary.chats().create("A chat", "2026-03-05", 1)?;
        let guidance = || {
            let of = Guidance::of(&stores, &settings, Some(chat))?;
            Ok::<_, Failure>((of.instructions, of.sampling.temperature, of.sampling.top_k))
        };
        assert_eq!(guidance()?, ("Be kind.".to_owned(), Some(0.5), Some(30)));

        let content = PresetContent {
            name: "Terse".to_owned(),
            instructions: "Be terse.".to_owned(),
            thinking: None,
            sampling: sampling(Some(0.0), None),
            tools: None,
        };
        let preset = Some(stores.disk.presets().add(&content.row(PresetId(0))?)?);
        let choose = |instructions: &str| {
            let instructions = instructions.to_owned();
            let chosen = ChatPreset {
                preset,
                instructions,
                tools: None,
            };
            let presets = stores.temporary.presets();
            presets.choose(DraftPlace::Chat(chat), Some(&chosen))
        };
        choose(" ")?;
        assert_eq!(guidance()?, ("Be terse.".to_owned(), Some(0.0), Some(30)));
        choose("Rhyme.")?;
        assert_eq!(guidance()?, ("Rhyme.".to_owned(), Some(0.0), Some(30)));
        Ok(())
    }
}
