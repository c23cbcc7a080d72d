//! The local API between the app, which has the model, and `goldcrest-serve`, which has the listening socket: lines of JSON
//! over the pipes of that child process.
//!
//! The first line is an [`ApiConfig`]. Then the program writes [`FromServer`] and reads [`ToServer`]. It ends with its
//! stdin.

#![warn(missing_docs)]

mod key;
mod line;
mod server;

pub use key::ApiKey;
pub use line::{
    AnswerForm, ApiConfig, ApiEnd, ApiMessage, ApiRefusal, ApiSampling, ApiText, ApiTool, ApiUsage,
    FromServer, Generation, GenerationPrompt, RefusedPart, TextPart, ToServer, TokenLogprob,
};
pub use server::{ApiSender, ApiServer, program};
