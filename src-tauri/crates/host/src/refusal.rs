//! Errors of opening a model, as sentences for users: without codes of the system and Markdown.

use std::io;
use std::path::Path;

use chat::{Failure, FailureCode, ModelChoice};
use engine::{ConfigError, GgufError, OpenError};

use crate::environment;

pub fn of(choice: &ModelChoice, error: &OpenError) -> Failure {
    let name = name_of(choice);
    let missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let (code, message) = match (choice, error) {
        (ModelChoice::File(file), OpenError::Gguf(GgufError::Io(error))) if missing(error) => {
            let folder = file.parent().unwrap_or(Path::new("."));
            let message = format!("{name} is no longer in {}.", folder.display());
            (FailureCode::MissingModel, message)
        }
        (_, error) => (FailureCode::BadModel, format!("{name} {}.", said(error))),
    };
    let named = match choice {
        ModelChoice::File(file) => environment::model().is_some_and(|named| named == *file),
        ModelChoice::BundledModel => false,
    };
    if named {
        return Failure::new(code, format!("{message} {} names it.", environment::MODEL));
    }
    Failure::new(code, message)
}

fn said(error: &OpenError) -> String {
    match error {
        OpenError::Config(ConfigError::Architecture(kind)) => {
            format!(
                "is {}. Goldcrest runs {} files",
                engine::model_kind(kind),
                engine::runnable()
            )
        }
        OpenError::Gguf(GgufError::NotGguf) => "is not a GGUF file".into(),
        OpenError::Gguf(GgufError::Io(error)) => format!("cannot be read: {}", error.kind()),
        other => format!("cannot be opened: {}", plain(&other.to_string())),
    }
}

/// Removes the system's error numbers, and replaces backticks with quotes.
fn plain(sentence: &str) -> String {
    let mut plain = String::with_capacity(sentence.len());
    for (at, part) in sentence.split('`').enumerate() {
        if at > 0 {
            plain.push(if at % 2 == 1 { '“' } else { '”' });
        }
        plain.push_str(part);
    }
    while let Some(start) = plain.find(" (os error ") {
        let end = plain[start..]
            .find(')')
            .map_or(plain.len(), |end| start + end + 1);
        plain.replace_range(start..end, "");
    }
    plain
}

/// Returns a model's name for the start of a sentence.
pub fn name_of(choice: &ModelChoice) -> String {
    match choice {
        ModelChoice::BundledModel => "The small model that comes with Goldcrest".into(),
        ModelChoice::File(file) => file_name(file),
    }
}

fn file_name(file: &Path) -> String {
    file.file_name()
        .unwrap_or(file.as_os_str())
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(error: OpenError) -> (FailureCode, String) {
        let failure = of(&ModelChoice::File("/models/x.gguf".into()), &error);
        (failure.code, failure.message)
    }

    fn bad(message: &str) -> (FailureCode, String) {
        (FailureCode::BadModel, message.to_owned())
    }

    #[test]
    fn a_file_that_is_gone_is_missed_by_its_folder() {
        let gone = GgufError::Io(io::Error::from_raw_os_error(2));
        let said = "x.gguf is no longer in /models.".to_owned();
        assert_eq!(message(gone.into()), (FailureCode::MissingModel, said));
    }

    #[test]
    fn another_kind_of_model_is_called_by_its_name() {
        let kind = |kind: &str| message(ConfigError::Architecture(kind.to_owned()).into()).1;
        assert_eq!(
            kind("gemma3"),
            "x.gguf is a Gemma 3 model. Goldcrest runs SmolLM3, SmolLM2, Llama 3, Qwen 2.5 and Qwen 3 files."
        );
        assert_eq!(
            kind("olmo2"),
            "x.gguf is an OLMo 2 model. Goldcrest runs SmolLM3, SmolLM2, Llama 3, Qwen 2.5 and Qwen 3 files."
        );
    }

    #[test]
    fn no_marks_and_no_error_numbers_reach_the_user() {
        let refused = GgufError::Io(io::Error::from_raw_os_error(13));
        assert_eq!(
            message(refused.into()),
            bad("x.gguf cannot be read: permission denied.")
        );
        assert_eq!(
            message(GgufError::NotGguf.into()),
            bad("x.gguf is not a GGUF file.")
        );
        let missing = ConfigError::Missing("smollm3.block_count".into());
        assert_eq!(
            message(missing.into()),
            bad(
                "x.gguf cannot be opened: metadata key “smollm3.block_count” is missing or has the wrong type."
            )
        );
        assert_eq!(
            plain("tensor `a` cannot be read: Input/output error (os error 5)"),
            "tensor “a” cannot be read: Input/output error"
        );
    }
}
