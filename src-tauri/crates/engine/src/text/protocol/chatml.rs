//! ChatML as SmolLM2 writes it. Sampling: SmolLM2's model card.

use inference::Sampling;

use super::format::{CallFormat, Protocol};

/// Number of parameters below which a model repeats itself with the sampling of its card: SmolLM2-135M in every third
/// answer, with a penalty in every tenth. A higher penalty spoils code and figures.
const REPEATS_BELOW: u64 = 200_000_000;

pub(super) static CHAT_ML: Protocol = Protocol {
    name: "ChatML",
    template: include_str!("chatml.jinja"),
    tokens: &["<|im_start|>", "<|im_end|>"],
    ends: &["<|im_end|>", "<|endoftext|>"],
    mark: "<|im_start|>",
    thinking: None,
    calls: CallFormat {
        tags: None,
        arguments: "arguments",
        code: None,
    },
    // SmolLM2-135M and 360M were not trained on any.
    tools: None,
    sampling: |parameters, _| {
        let usual = Sampling::default();
        Sampling {
            temperature: 0.2,
            top_p: 0.9,
            repeat_penalty: if parameters < REPEATS_BELOW {
                1.05
            } else {
                usual.repeat_penalty
            },
            ..usual
        }
    },
};
