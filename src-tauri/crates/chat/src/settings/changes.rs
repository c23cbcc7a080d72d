//! Diff of two `Settings`, by display name.

use serde_json::{Map, Value};

use crate::settings::names::name_of;
use crate::settings::{SAMPLING, Settings};

impl Settings {
    /// Returns the names of the settings that differ from `now`.
    pub(crate) fn names_of_changes(&self, now: &Settings) -> Vec<&'static str> {
        let mut keys: Vec<String> = self.changed_in(now).keys().cloned().collect();
        if let Some(at) = keys.iter().position(|key| key == SAMPLING) {
            keys.remove(at);
            let [before, now] = [self, now].map(|settings| sampling(settings).unwrap_or_default());
            let changed = before
                .into_iter()
                .filter(|(key, value)| now.get(key) != Some(value));
            keys.extend(changed.map(|(key, _)| key));
        }
        keys.iter().map(|key| name_of(key)).collect()
    }
}

fn sampling(settings: &Settings) -> Option<Map<String, Value>> {
    match serde_json::to_value(settings.sampling_changes) {
        Ok(Value::Object(values)) => Some(values),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::SamplingSettings;
    use crate::settings::names::setting_names;

    #[test]
    fn every_setting_has_a_name() {
        let settings = Settings::default();
        let keys = settings.rows().into_iter().chain(sampling(&settings));
        let keys: Vec<String> = keys.flatten().map(|(key, _)| key).collect();
        for key in &keys {
            assert!(setting_names().contains_key(key.as_str()), "{key}");
        }
        assert_eq!(keys.len(), setting_names().len(), "and nothing else has");
    }

    #[test]
    fn changes_are_named() {
        let before = Settings::default();
        let now = Settings {
            zoom: 110,
            sampling_changes: SamplingSettings {
                top_p: Some(0.5),
                ..before.sampling_changes
            },
            ..before.clone()
        };
        assert_eq!(before.names_of_changes(&now), ["Zoom", "Top-p"]);
        assert!(before.names_of_changes(&before).is_empty());
    }
}
