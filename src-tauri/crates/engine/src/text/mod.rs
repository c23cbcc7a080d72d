//! Text and tokens: the tokenizer, the chat template, the prompt, and the thinking part of an answer.

pub mod prompt;
pub mod protocol;
#[cfg(test)]
mod reference;
pub mod template;
pub mod think;
pub mod tokenizer;
