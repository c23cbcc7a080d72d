//! The model's name, from that of its folder: `SmolLM3-3B-Instruct` is the finetune `Instruct` of the 3B of `SmolLM3`.

use std::path::Path;

use engine::gguf::write::Field;

/// Returns the `general.*` metadata that name a model with this number of parameters.
pub(super) fn fields(folder: &Path, parameters: u64) -> Vec<(String, Field)> {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let name = absolute
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_else(|| "model".to_owned());
    let parts: Vec<&str> = name.split('-').filter(|part| !part.is_empty()).collect();
    let mut fields = vec![text("general.name", &spaced(&name))];
    match parts
        .iter()
        .position(|part| is_size(part))
        .filter(|&at| at > 0)
    {
        Some(at) => {
            let finetune = parts[at + 1..].join("-");
            if !finetune.is_empty() {
                fields.push(text("general.finetune", &finetune));
            }
            fields.push(text("general.basename", &parts[..at].join("-")));
            fields.push(text("general.size_label", &parts[at].to_uppercase()));
        }
        None => fields.push(text("general.size_label", &size_label(parameters))),
    }
    fields
}

/// Replaces the hyphens of a name with spaces.
pub(super) fn spaced(name: &str) -> String {
    let parts: Vec<&str> = name.split('-').filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

/// Makes a metadata entry of text.
pub(super) fn text(key: &str, value: &str) -> (String, Field) {
    (key.to_owned(), Field::String(value.to_owned()))
}

/// Returns whether a part is a size, such as `3B`, `1.7b` or `135M`.
fn is_size(part: &str) -> bool {
    let number = part.strip_suffix(['K', 'M', 'B', 'T', 'k', 'm', 'b', 't']);
    number.is_some_and(|number| {
        number.starts_with(|c: char| c.is_ascii_digit()) && number.parse::<f32>().is_ok()
    })
}

/// Formats a count of parameters with at least two digits: `3.1B`, `360M`.
fn size_label(parameters: u64) -> String {
    let (scale, unit) = match parameters {
        1_000_000_000_000.. => (1e12, "T"),
        1_000_000_000.. => (1e9, "B"),
        1_000_000.. => (1e6, "M"),
        _ => (1e3, "K"),
    };
    let scaled = parameters as f64 / scale;
    let digits = usize::from(scaled.round() < 10.0);
    format!("{scaled:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(folder: &str) -> String {
        let field = |(key, field): (String, Field)| match field {
            Field::String(text) => format!("{}={text}", key.trim_start_matches("general.")),
            _ => String::new(),
        };
        let fields = fields(Path::new(folder), 3_075_098_624);
        fields.into_iter().map(field).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_folder_names_its_model() {
        assert_eq!(
            named("/models/SmolLM3-3B"),
            "name=SmolLM3 3B basename=SmolLM3 size_label=3B"
        );
        let finetuned = "name=SmolLM3 3B Base finetune=Base basename=SmolLM3 size_label=3B";
        assert_eq!(named("SmolLM3-3B-Base/"), finetuned);
        assert_eq!(named("checkpoint"), "name=checkpoint size_label=3.1B");
        assert_eq!(size_label(360_000_000), "360M");
    }
}
