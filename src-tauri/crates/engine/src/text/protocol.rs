//! Chat formats: templates, the tokens that they need, and the sampling that their publishers recommend.

mod choice;
mod published;

use inference::Sampling;

pub(crate) use choice::Basis;
pub use choice::ChosenProtocol;

/// A chat format. Its template writes system text, turns and the beginning of the answer; the vocabulary determines the
/// tokens that end a turn.
#[derive(Debug)]
pub struct Protocol {
    /// Display name.
    pub name: &'static str,
    /// Goldcrest's own template.
    pub(crate) template: &'static str,
    /// Special tokens that it requires.
    tokens: &'static [&'static str],
    /// Text that only its templates have, among those with the same tokens.
    mark: &'static str,
    /// True if answers may begin with thinking, which the prompt can suppress.
    pub thinking: bool,
    /// True if earlier thinking stays in the prompt. Otherwise only the answer that is being written has any.
    pub(crate) keeps_thinking: bool,
    /// Text between the end of the thinking and the answer.
    pub(crate) after_thinking: &'static str,
    /// Sampling for files that name none, with thinking and without.
    sampling: fn(thinking: bool) -> Sampling,
}

/// Number of parameters below which a model in ChatML repeats itself with SmolLM2's sampling.
const REPEATS_BELOW: u64 = 200_000_000;

impl Protocol {
    /// Returns the sampling for files that name none, for a model with this number of parameters. With the sampling of
    /// its model card SmolLM2-135M repeats itself in every third answer; with a penalty in every tenth, and a higher
    /// one spoils code and figures.
    pub(crate) fn sampling_of(&self, parameters: u64, thinking: bool) -> Sampling {
        let recommended = (self.sampling)(thinking);
        if !std::ptr::eq(self, &CHAT_ML) || parameters >= REPEATS_BELOW {
            return recommended;
        }
        Sampling {
            repeat_penalty: 1.05,
            ..recommended
        }
    }
}

const CHAT_ML_TOKENS: [&str; 2] = ["<|im_start|>", "<|im_end|>"];
const THINKING_TOKENS: [&str; 4] = ["<|im_start|>", "<|im_end|>", "<think>", "</think>"];

/// SmolLM3's. Source: its model card and its generation_config.json.
pub static SMOLLM3_CHAT: Protocol = Protocol {
    name: "SmolLM3",
    template: include_str!("templates/smollm3.jinja"),
    tokens: &CHAT_ML_TOKENS,
    mark: "Reasoning Mode",
    thinking: true,
    keeps_thinking: true,
    after_thinking: "\n",
    sampling: |_| Sampling::default(),
};

/// ChatML as SmolLM2 writes it. Sampling: SmolLM2's model card.
static CHAT_ML: Protocol = Protocol {
    name: "ChatML",
    template: include_str!("templates/chatml.jinja"),
    tokens: &CHAT_ML_TOKENS,
    mark: "<|im_start|>",
    thinking: false,
    keeps_thinking: true,
    after_thinking: "\n",
    sampling: |_| Sampling {
        temperature: 0.2,
        top_p: 0.9,
        ..Sampling::default()
    },
};

/// ChatML as Qwen 2.5 writes it. Sampling: its generation_config.json.
static QWEN_2: Protocol = Protocol {
    name: "Qwen 2.5",
    template: include_str!("templates/chatml.jinja"),
    tokens: &CHAT_ML_TOKENS,
    mark: "<|im_start|>",
    thinking: false,
    keeps_thinking: true,
    after_thinking: "\n",
    sampling: |_| Sampling {
        temperature: 0.7,
        top_p: 0.8,
        top_k: 20,
        repeat_penalty: 1.05,
        ..Sampling::default()
    },
};

/// Qwen 3's, with a thinking that can be switched off. Sampling: its model card.
static QWEN_3: Protocol = Protocol {
    name: "Qwen 3",
    template: include_str!("templates/qwen3.jinja"),
    tokens: &THINKING_TOKENS,
    mark: "<think>",
    thinking: true,
    keeps_thinking: false,
    after_thinking: "\n\n",
    sampling: |thinking| {
        if thinking {
            Sampling {
                temperature: 0.6,
                top_p: 0.95,
                top_k: 20,
                ..Sampling::default()
            }
        } else {
            (QWEN_3_INSTRUCT.sampling)(false)
        }
    },
};

/// Qwen 3's of the models that do not think, such as Qwen3-4B-Instruct-2507. Sampling: their model cards.
static QWEN_3_INSTRUCT: Protocol = Protocol {
    name: "Qwen 3 Instruct",
    template: include_str!("templates/qwen3.jinja"),
    tokens: &CHAT_ML_TOKENS,
    mark: "<|im_start|>",
    thinking: false,
    keeps_thinking: false,
    after_thinking: "\n\n",
    sampling: |_| Sampling {
        temperature: 0.7,
        top_p: 0.8,
        top_k: 20,
        ..Sampling::default()
    },
};

/// Llama 3's. Source: llama.com, "Model Cards & Prompt formats"; sampling: generation_config.json.
static LLAMA_3: Protocol = Protocol {
    name: "Llama 3",
    template: include_str!("templates/llama3.jinja"),
    tokens: &["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
    mark: "<|start_header_id|>",
    thinking: false,
    keeps_thinking: true,
    after_thinking: "\n",
    sampling: |_| Sampling {
        temperature: 0.6,
        top_p: 0.9,
        ..Sampling::default()
    },
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_very_small_model_in_chat_ml_has_a_penalty_on_repetition() {
        let penalty = |protocol: &Protocol, parameters| {
            let it = protocol.sampling_of(parameters, false);
            (it.temperature, it.repeat_penalty)
        };
        assert_eq!(penalty(&CHAT_ML, 134_515_008), (0.2, 1.05));
        assert_eq!(penalty(&CHAT_ML, 361_821_120), (0.2, 1.0));
        assert_eq!(penalty(&QWEN_2, 134_515_008), (0.7, 1.05));
    }

    #[test]
    fn each_format_has_the_sampling_of_its_publisher() {
        for (protocol, with, without) in [
            (&SMOLLM3_CHAT, (0.6, 0.95, 0), (0.6, 0.95, 0)),
            (&CHAT_ML, (0.2, 0.9, 0), (0.2, 0.9, 0)),
            (&QWEN_2, (0.7, 0.8, 20), (0.7, 0.8, 20)),
            (&QWEN_3, (0.6, 0.95, 20), (0.7, 0.8, 20)),
            (&QWEN_3_INSTRUCT, (0.7, 0.8, 20), (0.7, 0.8, 20)),
            (&LLAMA_3, (0.6, 0.9, 0), (0.6, 0.9, 0)),
        ] {
            let of = |thinking| {
                let it = (protocol.sampling)(thinking);
                (it.temperature, it.top_p, it.top_k)
            };
            assert_eq!((of(true), of(false)), (with, without), "{}", protocol.name);
        }
    }
}
