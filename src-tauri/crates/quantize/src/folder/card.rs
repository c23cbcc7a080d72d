//! The model card's front matter: licence, languages, tags and the base model.
//!
//! `README.md` may begin with YAML between two lines of `---`. Only the plain forms that model cards use are read:
//! `key: value`, `key: [a, b]` and a list of `- item` lines. A card without front matter or with other forms is no
//! error, as it holds nothing that a model needs to run.

use std::path::Path;

use engine::gguf::write::Field;

use super::json::{LONGEST, read_text};
use super::name::{spaced, text};

/// Returns the `general.*` metadata of a card.
pub(super) fn fields(folder: &Path) -> Vec<(String, Field)> {
    let card = read_text(&folder.join("README.md"), LONGEST);
    card.map(|card| of_card(&card)).unwrap_or_default()
}

fn of_card(card: &str) -> Vec<(String, Field)> {
    let entries = front_matter(card);
    let values = |names: &[&str]| -> Vec<String> {
        let wanted = entries
            .iter()
            .filter(|(key, _)| names.contains(&key.as_str()));
        wanted.flat_map(|(_, values)| values.clone()).collect()
    };
    let mut fields = Vec::new();
    for (name, key) in [
        ("license", "general.license"),
        ("license_name", "general.license.name"),
        ("license_link", "general.license.link"),
    ] {
        let value = values(&[name]).join(",");
        if !value.is_empty() {
            fields.push(text(key, &value));
        }
    }
    fields.extend(base_models(&values(&["base_model"])));
    for (names, key) in [
        (["tags", "pipeline_tag"], "general.tags"),
        (["languages", "language"], "general.languages"),
    ] {
        let values = values(&names);
        if !values.is_empty() {
            fields.push((key.to_owned(), Field::Strings(values)));
        }
    }
    fields
}

/// Returns the base models, each `organisation/name`.
fn base_models(ids: &[String]) -> Vec<(String, Field)> {
    let ids: Vec<(&str, &str)> = ids.iter().filter_map(|id| id.split_once('/')).collect();
    let Some(count) = u32::try_from(ids.len()).ok().filter(|&count| count > 0) else {
        return Vec::new();
    };
    let mut fields = vec![("general.base_model.count".to_owned(), Field::U32(count))];
    for (index, (organisation, name)) in ids.into_iter().enumerate() {
        let mut add = |part: &str, value: &str| {
            fields.push(text(&format!("general.base_model.{index}.{part}"), value));
        };
        add("name", &spaced(name));
        add("organization", &spaced(organisation));
        add(
            "repo_url",
            &format!("https://huggingface.co/{organisation}/{name}"),
        );
    }
    fields
}

/// Returns the keys with their values, in the order of the card.
fn front_matter(card: &str) -> Vec<(String, Vec<String>)> {
    let mut lines = card.lines();
    let mut entries: Vec<(String, Vec<String>)> = Vec::new();
    if lines.next() != Some("---") {
        return entries;
    }
    for line in lines.take_while(|line| *line != "---") {
        let item = line.trim_start().strip_prefix("- ");
        match (item, entries.last_mut()) {
            (Some(item), Some((_, values))) => values.push(plain(item)),
            _ if line.starts_with([' ', '#']) => {}
            _ => {
                let Some((key, value)) = line.split_once(':') else {
                    continue;
                };
                let value = value.trim();
                let values = match value
                    .strip_prefix('[')
                    .and_then(|list| list.strip_suffix(']'))
                {
                    Some(list) => list.split(',').map(plain).collect(),
                    None if value.is_empty() => Vec::new(),
                    None => vec![plain(value)],
                };
                entries.push((key.trim().to_owned(), values));
            }
        }
    }
    entries
}

/// Returns a value without quotes around it.
fn plain(value: &str) -> String {
    value.trim().trim_matches(['"', '\'']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_gives_licence_languages_tags_and_base_model() {
        let card = "---\nlibrary_name: transformers\nlicense: apache-2.0\nlanguage:\n- en\n- \"no\"\ntags: [chat, 'small']\n\
                    pipeline_tag: text-generation\nbase_model:\n  - HuggingFaceTB/SmolLM3-3B-Base\n---\nlicense: other\n";
        let fields = of_card(card);
        let said: Vec<String> = fields
            .iter()
            .map(|(key, field)| format!("{key} {field:?}"))
            .collect();
        assert_eq!(
            said,
            [
                "general.license String(\"apache-2.0\")",
                "general.base_model.count U32(1)",
                "general.base_model.0.name String(\"SmolLM3 3B Base\")",
                "general.base_model.0.organization String(\"HuggingFaceTB\")",
                "general.base_model.0.repo_url String(\"https://huggingface.co/HuggingFaceTB/SmolLM3-3B-Base\")",
                "general.tags Strings([\"chat\", \"small\", \"text-generation\"])",
                "general.languages Strings([\"en\", \"no\"])",
            ]
        );
        for card in [
            "",
            "---",
            "# A title\nlicense: mit",
            "---\n- a\n:\n---",
            "---\n: \n  x: y\n",
        ] {
            assert!(of_card(card).is_empty(), "{card:?}");
        }
    }
}
