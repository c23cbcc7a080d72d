//! Chat formats: templates, the choice of one for a model, and the sampling that its publisher recommends.

use inference::Sampling;

use super::tokenizer::Specials;
use crate::model::architecture::{Architecture, QWEN2, QWEN3, SMOLLM3};

/// A chat format. Its template writes system text, turns and the beginning of the answer; which tokens end a turn is a
/// matter of the vocabulary.
#[derive(Debug)]
pub struct Protocol {
    /// Display name.
    pub name: &'static str,
    /// Goldcrest's template of it.
    pub(crate) template: &'static str,
    /// Earlier thinking stays in the prompt. Otherwise only the answer that is being written has any.
    pub(crate) keeps_thinking: bool,
    /// Text between the end of the thinking and the answer.
    pub(crate) after_thinking: &'static str,
    /// Sampling for files that name none.
    pub(crate) sampling: fn() -> Sampling,
}

/// SmolLM3's. Source: its model card and its generation_config.json.
pub static SMOLLM3_CHAT: Protocol = Protocol {
    name: "SmolLM3",
    template: include_str!("templates/smollm3.jinja"),
    keeps_thinking: true,
    after_thinking: "\n",
    sampling: Sampling::default,
};

/// ChatML as SmolLM2 writes it. Sampling: SmolLM2's model card.
static CHAT_ML: Protocol = Protocol {
    name: "ChatML",
    template: include_str!("templates/chatml.jinja"),
    keeps_thinking: true,
    after_thinking: "\n",
    sampling: || Sampling {
        temperature: 0.2,
        top_p: 0.9,
        ..Sampling::default()
    },
};

/// ChatML as Qwen 2.5 writes it. Sampling: its generation_config.json.
static QWEN_2: Protocol = Protocol {
    name: "Qwen 2.5",
    template: include_str!("templates/chatml.jinja"),
    keeps_thinking: true,
    after_thinking: "\n",
    sampling: || Sampling {
        temperature: 0.7,
        top_p: 0.8,
        top_k: 20,
        repeat_penalty: 1.05,
        ..Sampling::default()
    },
};

/// Qwen 3's. Sampling: its model card, with thinking.
static QWEN_3: Protocol = Protocol {
    name: "Qwen 3",
    template: include_str!("templates/qwen3.jinja"),
    keeps_thinking: false,
    after_thinking: "\n\n",
    sampling: || Sampling {
        temperature: 0.6,
        top_p: 0.95,
        top_k: 20,
        ..Sampling::default()
    },
};

/// Llama 3's. Source: llama.com, "Model Cards & Prompt formats"; sampling: generation_config.json.
static LLAMA_3: Protocol = Protocol {
    name: "Llama 3",
    template: include_str!("templates/llama3.jinja"),
    keeps_thinking: true,
    after_thinking: "\n",
    sampling: || Sampling {
        temperature: 0.6,
        top_p: 0.9,
        ..Sampling::default()
    },
};

/// SHA-256 of published templates, without white space at their end. Those with `true` are harmless and run as they are;
/// the others are replaced by Goldcrest's.
const PUBLISHED: [(&str, &Protocol, bool); 7] = [
    // SmolLM3-3B of Hugging Face.
    (
        "3982464ecf49b0b38514fec4a5c22273fe70b7259480735bf13e225e4b64bec2",
        &SMOLLM3_CHAT,
        true,
    ),
    // SmolLM3-3B of unsloth.
    (
        "cbc1d50f777ec029b33f53b23d7a224cceb65bcc8c7fac54946dbb56514e4d1e",
        &SMOLLM3_CHAT,
        true,
    ),
    // The demo model: models/demo/template.jinja.
    (
        "362bba9deb20958f6ca518c9c137519aa4a9d0a1707769c7a5806c1bd4cd4acd",
        &SMOLLM3_CHAT,
        true,
    ),
    // SmolLM2-Instruct.
    (
        "872be49dbb638044ad01b60388f48d469ff2980e5f0dccdc22ec907db54d0788",
        &CHAT_ML,
        true,
    ),
    // Qwen 2.5-Instruct.
    (
        "55b2f4a26ac9ee719330a61a0c39d9e538b0e9322212f048326318cff4f8674a",
        &QWEN_2,
        true,
    ),
    // Qwen 3. It writes an empty thinking before an answer that is continued.
    (
        "87a2728cb8dc9fe424d624542f6060ec05a1d285ebbec578bb078900e33396b5",
        &QWEN_3,
        false,
    ),
    // Llama 3.2-Instruct.
    (
        "d82792f95932f1c9cef5c4bd992f171225e3bf8c7b609b4557c9e1ec96be819f",
        &LLAMA_3,
        true,
    ),
];

impl Protocol {
    /// The format of the published template with this hash, and whether that template may run.
    pub(crate) fn of_published(sha256: &str) -> Option<(&'static Protocol, bool)> {
        let found = PUBLISHED.iter().find(|(hash, ..)| *hash == sha256)?;
        Some((found.1, found.2))
    }

    /// The format of a model whose template is none of the published ones: by its control tokens, and among the formats with
    /// ChatML's tokens by its architecture. `None` where the vocabulary has the tokens of no format.
    pub(crate) fn of_vocabulary(
        architecture: &Architecture,
        specials: &Specials,
    ) -> Option<&'static Protocol> {
        let has = |tokens: &[&str]| tokens.iter().all(|token| specials.id(token).is_some());
        if architecture == &SMOLLM3 {
            Some(&SMOLLM3_CHAT)
        } else if has(&["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]) {
            Some(&LLAMA_3)
        } else if !has(&["<|im_start|>", "<|im_end|>"]) {
            None
        } else if architecture == &QWEN3 {
            Some(&QWEN_3)
        } else if architecture == &QWEN2 {
            Some(&QWEN_2)
        } else {
            Some(&CHAT_ML)
        }
    }
}
