//! Chat formats: templates, the tokens that they need, and the sampling that their publishers recommend. Each stands in a
//! file of its own.

mod chatml;
mod choice;
mod format;
mod llama3;
mod published;
mod qwen2;
mod qwen3;
mod smollm3;

pub(crate) use choice::Basis;
pub use choice::ChosenProtocol;
pub use format::Protocol;
pub(crate) use format::{CallFormat, CodeFormat, THINK_TAGS};
pub use smollm3::SMOLLM3_CHAT;

#[cfg(test)]
mod tests {
    use super::chatml::CHAT_ML;
    use super::llama3::LLAMA_3;
    use super::qwen2::QWEN_2;
    use super::qwen3::{QWEN_3, QWEN_3_INSTRUCT};
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
                let it = protocol.sampling_of(3_000_000_000, thinking);
                (it.temperature, it.top_p, it.top_k)
            };
            assert_eq!((of(true), of(false)), (with, without), "{}", protocol.name);
        }
    }
}
