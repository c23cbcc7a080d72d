//! The lines of the two programs.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::key::ApiKey;

/// First line to the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiConfig {
    /// Port to listen on; 0 for any free one.
    pub port: u16,
    /// The key of all clients.
    pub key: ApiKey,
    /// Origins of web pages that may ask, such as `http://localhost:3000`.
    pub origins: Vec<String>,
}

/// Lines of the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum FromServer {
    /// It listens.
    Listening {
        /// On this port.
        port: u16,
    },
    /// It cannot listen, and ends.
    Failed {
        /// Sentence for the user.
        message: String,
    },
    /// Asks for an answer. [`ToServer`] with this id follow, the last one an end or a refusal.
    Generate {
        /// Id of the request.
        id: u64,
        /// The request.
        request: Box<Generation>,
    },
    /// Nobody waits for this answer any more.
    Cancel {
        /// Id of the request.
        id: u64,
    },
    /// Asks for the tokens of a text.
    Tokenize {
        /// Id of the request.
        id: u64,
        /// The text.
        text: String,
    },
    /// Asks for the model.
    Model {
        /// Id of the request.
        id: u64,
    },
    /// The number of requests has changed.
    Load {
        /// Answers that are being written.
        running: u32,
        /// Requests that wait for a place.
        waiting: u32,
    },
}

/// Lines to the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ToServer {
    /// Other clients may ask from now on. The port stays.
    Configure(ApiConfig),
    /// The model has taken a request.
    Begun {
        /// Id of the request.
        id: u64,
        /// Name of the model.
        model: String,
    },
    /// A piece of an answer.
    Text {
        /// Id of the request.
        id: u64,
        /// The piece.
        text: ApiText,
    },
    /// A call of a tool.
    Call {
        /// Id of the request.
        id: u64,
        /// Name of the tool.
        name: String,
        /// Its arguments as JSON.
        arguments: String,
    },
    /// An answer has ended.
    Ended {
        /// Id of the request.
        id: u64,
        /// Reason of the end.
        reason: ApiEnd,
        /// Its figures.
        usage: ApiUsage,
    },
    /// A request cannot be answered, or an answer could not be completed.
    Refused {
        /// Id of the request.
        id: u64,
        /// Kind of the refusal.
        why: ApiRefusal,
        /// Sentence for the client.
        message: String,
    },
    /// The tokens of a text.
    Tokens {
        /// Id of the request.
        id: u64,
        /// The tokens.
        tokens: Vec<u32>,
    },
    /// The model that answers.
    Model {
        /// Id of the request.
        id: u64,
        /// Its name; `None` if there is none.
        name: Option<String>,
        /// Length of its context in tokens; `None` if it is not open.
        context: Option<usize>,
    },
}

impl ToServer {
    /// Returns the id of the request; 0 if it belongs to none.
    #[must_use]
    pub fn id(&self) -> u64 {
        match self {
            ToServer::Configure(_) => 0,
            ToServer::Begun { id, .. }
            | ToServer::Text { id, .. }
            | ToServer::Call { id, .. }
            | ToServer::Ended { id, .. }
            | ToServer::Refused { id, .. }
            | ToServer::Tokens { id, .. }
            | ToServer::Model { id, .. } => *id,
        }
    }

    /// Returns true if nothing follows for its request.
    #[must_use]
    pub fn is_last(&self) -> bool {
        !matches!(
            self,
            ToServer::Begun { .. } | ToServer::Text { .. } | ToServer::Call { .. }
        )
    }
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApiText {
    /// Part of the answer that it belongs to.
    pub part: TextPart,
    /// The text; may be empty.
    pub text: String,
    /// Its tokens, if their log-probabilities are wanted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logprobs: Vec<TokenLogprob>,
}

/// Parts of an answer that are text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TextPart {
    /// The thinking.
    Thinking,
    /// The answer.
    Answer,
}

/// A token with its log-probability, and the likeliest ones in its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenLogprob {
    /// Bytes of the token.
    pub bytes: Vec<u8>,
    /// Natural logarithm of its probability.
    pub logprob: f32,
    /// Bytes and log-probabilities of the likeliest tokens, the likeliest first.
    pub top: Vec<(Vec<u8>, f32)>,
}

/// Reasons for the end of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ApiEnd {
    /// The model ended its turn, or a stop text came.
    Stop,
    /// The answer calls tools.
    Calls,
    /// The tokens or the context are used up.
    Length,
}

/// Reasons for not answering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ApiRefusal {
    /// The prompt does not fit the context.
    TooLong,
    /// There is no model, or it was closed.
    NoModel,
    /// The request is not one that this model can answer, because of this part of it; `None` if it may be any.
    Unsupported(Option<RefusedPart>),
    /// The model failed.
    Failed,
}

/// Parts of a request that a model may be unable to answer. Their fields have other names in each route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RefusedPart {
    /// The conversation or the text.
    Prompt,
    /// The form of the answer.
    Form,
    /// The tools.
    Tools,
}

/// Figures of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiUsage {
    /// Tokens of the prompt.
    pub prompt: usize,
    /// Tokens of the prompt that were in the cache.
    pub cached: usize,
    /// Tokens of the answer, thinking included.
    pub answer: usize,
    /// Tokens of the thinking.
    pub thinking: usize,
}

/// A request for an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Generation {
    /// The text that is continued.
    pub prompt: GenerationPrompt,
    /// Form of the answer.
    pub form: AnswerForm,
    /// Overrides of the model's sampling.
    pub sampling: ApiSampling,
    /// Maximum tokens of the answer, thinking included.
    pub max_tokens: Option<usize>,
    /// Maximum tokens of thinking.
    pub thinking_budget: Option<usize>,
    /// Texts before which the answer ends.
    pub stop: Vec<String>,
    /// Number of the likeliest tokens that are reported with each token; `None` reports nothing.
    pub logprobs: Option<usize>,
}

/// The text that an answer continues.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum GenerationPrompt {
    /// A conversation.
    Conversation {
        /// The messages, oldest first.
        messages: Vec<ApiMessage>,
        /// The tools.
        tools: Vec<ApiTool>,
        /// True if the model thinks first; `None`: if it can.
        thinking: Option<bool>,
    },
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
}

/// A message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase")]
pub enum ApiMessage {
    /// Instructions.
    System {
        /// The text.
        text: String,
    },
    /// A question.
    User {
        /// The text.
        text: String,
    },
    /// An answer.
    Assistant {
        /// The text.
        text: String,
        /// Calls behind the text: names, and arguments as JSON.
        calls: Vec<(String, String)>,
    },
    /// The result of a call.
    Tool {
        /// The text.
        text: String,
    },
}

/// A tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApiTool {
    /// Name: 1 to 64 of the characters `A-Za-z0-9_-`.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// Forms of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum AnswerForm {
    /// Text, without calls.
    Free,
    /// Text or calls.
    Calls {
        /// True if the answer is a call.
        required: bool,
        /// The only tool that may be called.
        only: Option<String>,
        /// True if one call ends the answer.
        single: bool,
    },
    /// Calls, or else JSON of a schema.
    CallsOrJson {
        /// The schema.
        schema: Value,
        /// True if one call ends the answer.
        single: bool,
    },
    /// JSON of a schema.
    Json {
        /// The schema.
        schema: Value,
    },
}

/// Overrides of a model's sampling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApiSampling {
    /// Temperature.
    pub temperature: Option<f32>,
    /// Top-p.
    pub top_p: Option<f32>,
    /// Top-k.
    pub top_k: Option<u32>,
    /// Min-p.
    pub min_p: Option<f32>,
    /// Seed.
    pub seed: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_keeps_its_reason() {
        for why in [
            ApiRefusal::TooLong,
            ApiRefusal::Unsupported(None),
            ApiRefusal::Unsupported(Some(RefusedPart::Form)),
        ] {
            let message = "No.".to_owned();
            let line = ToServer::Refused {
                id: 7,
                why,
                message,
            };
            let written = serde_json::to_string(&line).expect("plain data");
            let read: ToServer = serde_json::from_str(&written).expect("a line");
            assert_eq!(read, line);
        }
    }
}
