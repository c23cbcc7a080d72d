//! Text and tokens: the tokenizer, the chat template, the prompt, and what of an answer is thinking.

pub mod prompt;
pub mod template;
pub mod think;
pub mod tokenizer;
