//! The choice of a chat format for a model. No template of unknown text runs; it only helps to choose. In this order:
//!
//! 1. The published template of this SHA-256 names its format.
//! 2. Else the text of the template does: the first row of the table whose mark it has. Among the formats with the mark of
//!    ChatML the architecture decides.
//! 3. Else, without a template or with one of no known format, the vocabulary and the architecture do: the first row of the
//!    table of that architecture.
//!
//! | format | special tokens | mark in the text | architecture |
//! |---|---|---|---|
//! | SmolLM3 | `<\|im_start\|>`, `<\|im_end\|>` | `Reasoning Mode` | smollm3 |
//! | Llama 3 | `<\|start_header_id\|>`, `<\|end_header_id\|>`, `<\|eot_id\|>` | `<\|start_header_id\|>` | any |
//! | Qwen 3 | as ChatML, `<think>`, `</think>` | `<think>` | qwen3 |
//! | Qwen 3 Instruct | as ChatML | `<\|im_start\|>` | qwen3 |
//! | Qwen 2.5 | as ChatML | `<\|im_start\|>` | qwen2 |
//! | ChatML | `<\|im_start\|>`, `<\|im_end\|>` | `<\|im_start\|>` | any |
//!
//! Every step requires that the vocabulary has the special tokens of the format. A model without a format does not open.

use super::chatml::CHAT_ML;
use super::format::Protocol;
use super::llama3::LLAMA_3;
use super::published::protocol_of;
use super::qwen2::QWEN_2;
use super::qwen3::{QWEN_3, QWEN_3_INSTRUCT};
use super::smollm3::SMOLLM3_CHAT;
use crate::model::architecture::{Architecture, QWEN2, QWEN3, SMOLLM3};

/// The chat format of a model, and the basis on which it was chosen.
#[derive(Clone, Copy, Debug)]
pub struct ChosenProtocol {
    /// The format.
    pub protocol: &'static Protocol,
    pub(crate) basis: Basis,
}

/// Basis of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Basis {
    /// The file's template, a published one.
    Published {
        /// Its text is harmless.
        may_run: bool,
    },
    /// The text of the file's template, which is not a published one.
    TemplateText,
    /// The vocabulary, because the file's template has no mark of a known format.
    Vocabulary,
    /// The vocabulary, because the file has no template.
    NoTemplate,
}

/// Formats and their architectures, in the order in which they are tried.
const FORMATS: [(&Protocol, Option<&Architecture>); 6] = [
    (&SMOLLM3_CHAT, Some(&SMOLLM3)),
    (&LLAMA_3, None),
    (&QWEN_3, Some(&QWEN3)),
    (&QWEN_3_INSTRUCT, Some(&QWEN3)),
    (&QWEN_2, Some(&QWEN2)),
    (&CHAT_ML, None),
];

impl Protocol {
    /// Returns all formats.
    pub(crate) fn all() -> impl Iterator<Item = &'static Protocol> {
        FORMATS.into_iter().map(|(format, _)| format)
    }
}

impl ChosenProtocol {
    /// The format of a model with this template and these special tokens; `None` if it has the tokens of no format.
    pub(crate) fn of_model(
        template: Option<&str>,
        architecture: &Architecture,
        has_token: impl Fn(&str) -> bool,
    ) -> Option<ChosenProtocol> {
        let fits = |it: &Protocol| it.tokens.iter().all(|token| has_token(token));
        let is_meant = |of: Option<&Architecture>| of.is_none_or(|of| of == architecture);
        let by_text = |template: &str| {
            let found = FORMATS.into_iter().find(|(it, of)| {
                let is_alone = it.mark != CHAT_ML.mark;
                fits(it) && template.contains(it.mark) && (is_alone || is_meant(*of))
            });
            found.map(|(protocol, _)| (protocol, Basis::TemplateText))
        };
        let by_vocabulary = |basis| {
            let mut formats = FORMATS.into_iter();
            let found = formats.find(|(it, of)| fits(it) && is_meant(*of));
            found.map(|(protocol, _)| (protocol, basis))
        };
        let (protocol, basis) = match template {
            None => by_vocabulary(Basis::NoTemplate)?,
            Some(template) => match protocol_of(template).filter(|(it, _)| fits(it)) {
                Some((protocol, may_run)) => (protocol, Basis::Published { may_run }),
                None => by_text(template).or_else(|| by_vocabulary(Basis::Vocabulary))?,
            },
        };
        Some(ChosenProtocol { protocol, basis })
    }
}

impl ChosenProtocol {
    /// True if the file has the published template of the format.
    pub fn is_certain(self) -> bool {
        matches!(self.basis, Basis::Published { .. })
    }
}

impl std::fmt::Display for ChosenProtocol {
    /// Writes the name of the format, with any uncertainty about it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.protocol.name)?;
        f.write_str(match self.basis {
            Basis::Published { .. } => "",
            Basis::TemplateText => {
                ", chosen by the file's chat template, which differs from the published one"
            }
            Basis::Vocabulary => {
                ", chosen by the file's tokens; its chat template is of another format"
            }
            Basis::NoTemplate => ", chosen by the file's tokens; it has no chat template",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::architecture::LLAMA;

    const CHAT_ML_TOKENS: &str = "<|im_start|> <|im_end|>";
    const THINKING_TOKENS: &str = "<|im_start|> <|im_end|> <think> </think>";
    const LLAMA_3_TOKENS: &str = "<|start_header_id|> <|end_header_id|> <|eot_id|>";

    /// The format of a model with these special tokens, and its basis, as the model's card has them.
    fn chosen(template: Option<&str>, architecture: &Architecture, tokens: &str) -> String {
        let has_token = |text: &str| tokens.split(' ').any(|token| token == text);
        ChosenProtocol::of_model(template, architecture, has_token)
            .map_or_else(|| "none".to_owned(), |chosen| chosen.to_string())
    }

    #[test]
    fn without_a_template_the_vocabulary_and_the_architecture_choose() {
        let both = format!("{CHAT_ML_TOKENS} {LLAMA_3_TOKENS}");
        for (architecture, tokens, expected) in [
            (&SMOLLM3, CHAT_ML_TOKENS, "SmolLM3"),
            (&LLAMA, CHAT_ML_TOKENS, "ChatML"),
            (&LLAMA, LLAMA_3_TOKENS, "Llama 3"),
            (&LLAMA, &both, "Llama 3"),
            (&QWEN2, CHAT_ML_TOKENS, "Qwen 2.5"),
            (&QWEN2, THINKING_TOKENS, "Qwen 2.5"),
            (&LLAMA, THINKING_TOKENS, "ChatML"),
            (&QWEN3, THINKING_TOKENS, "Qwen 3"),
            (&QWEN3, CHAT_ML_TOKENS, "Qwen 3 Instruct"),
        ] {
            let basis = "chosen by the file's tokens; it has no chat template";
            let expected = format!("{expected}, {basis}");
            assert_eq!(chosen(None, architecture, tokens), expected, "{tokens}");
        }
        for architecture in [&SMOLLM3, &LLAMA, &QWEN2, &QWEN3] {
            assert_eq!(chosen(None, architecture, "<|im_start|> <think>"), "none");
        }
    }

    #[test]
    fn a_template_of_unknown_text_chooses_by_its_marks() {
        let both = format!("{THINKING_TOKENS} {LLAMA_3_TOKENS}");
        let smollm3 = "<|im_start|>system\nReasoning Mode: /think <think>";
        for (template, architecture, expected) in [
            (smollm3, &SMOLLM3, "SmolLM3"),
            (smollm3, &LLAMA, "SmolLM3"),
            ("<|im_start|>{{ role }}<|im_end|>", &SMOLLM3, "ChatML"),
            ("<|im_start|>{{ role }}<|im_end|>", &LLAMA, "ChatML"),
            ("<|start_header_id|>{{ role }}", &LLAMA, "Llama 3"),
            ("<|im_start|>{{ role }} <think>", &QWEN3, "Qwen 3"),
            ("<|im_start|>{{ role }} <think>", &QWEN2, "Qwen 3"),
            ("<|im_start|>{{ role }}", &QWEN3, "Qwen 3 Instruct"),
            ("<|im_start|>{{ role }}", &QWEN2, "Qwen 2.5"),
        ] {
            let basis = "chosen by the file's chat template, which differs from the published one";
            let expected = format!("{expected}, {basis}");
            assert_eq!(chosen(Some(template), architecture, &both), expected);
        }
        // The vocabulary lacks the tokens of the format in the text, or the text has no mark.
        for template in ["<|start_header_id|>", "[INST] {{ content }} [/INST]", ""] {
            let basis = "chosen by the file's tokens; its chat template is of another format";
            let expected = format!("ChatML, {basis}");
            assert_eq!(chosen(Some(template), &LLAMA, CHAT_ML_TOKENS), expected);
        }
        assert_eq!(chosen(Some("<|im_start|>"), &LLAMA, "<s> </s>"), "none");
    }

    #[test]
    fn a_published_template_is_certain_where_the_vocabulary_has_its_tokens() {
        let tiny = include_str!("../../../tests/fixtures/tiny-smollm3.jinja");
        assert_eq!(chosen(Some(tiny), &SMOLLM3, CHAT_ML_TOKENS), "SmolLM3");
        assert_eq!(chosen(Some(tiny), &LLAMA, CHAT_ML_TOKENS), "SmolLM3");
        assert!(chosen(Some(tiny), &LLAMA, LLAMA_3_TOKENS).starts_with("Llama 3, "));
        assert_eq!(chosen(Some(tiny), &SMOLLM3, "<s>"), "none");
    }
}
