//! Qwen 3's chat formats. Sampling: the model cards.

use inference::Sampling;

use super::format::{Protocol, TAGGED_CALLS, TOOLS, Thinking};

/// The format of models with a thinking that can be switched off.
pub(super) static QWEN_3: Protocol = Protocol {
    name: "Qwen 3",
    template: include_str!("qwen3.jinja"),
    tokens: &["<|im_start|>", "<|im_end|>", "<think>", "</think>"],
    ends: &["<|im_end|>", "<|endoftext|>"],
    mark: "<think>",
    thinking: Some(Thinking {
        kept: false,
        after: "\n\n",
    }),
    calls: TAGGED_CALLS,
    tools: Some(TOOLS),
    sampling: |_, thinking| {
        if thinking {
            Sampling {
                temperature: 0.6,
                top_p: 0.95,
                top_k: 20,
                ..Sampling::default()
            }
        } else {
            without_thinking()
        }
    },
};

/// The format of models that do not think, such as Qwen3-4B-Instruct-2507.
pub(super) static QWEN_3_INSTRUCT: Protocol = Protocol {
    name: "Qwen 3 Instruct",
    template: include_str!("qwen3.jinja"),
    tokens: &["<|im_start|>", "<|im_end|>"],
    ends: &["<|im_end|>", "<|endoftext|>"],
    mark: "<|im_start|>",
    thinking: None,
    calls: TAGGED_CALLS,
    tools: Some(TOOLS),
    sampling: |_, _| without_thinking(),
};

fn without_thinking() -> Sampling {
    Sampling {
        temperature: 0.7,
        top_p: 0.8,
        top_k: 20,
        ..Sampling::default()
    }
}
