//! Requests of other programs to the open model. No chat has them, and nothing of them is stored.

use std::borrow::Cow;
use std::sync::Arc;

use inference::{Constraint, Conversation, Event, Finished, GenerateParams, Prompt, Signals};
use store::ChatId;

use crate::failure::{Failure, FailureCode};
use crate::model_host::{ModelHost, ModelInfo, PromptCounter};
use crate::settings::SamplingSettings;

/// Label of their sequences in memory. Like that of a temporary chat, it is never written to the disk.
pub const API: ChatId = ChatId(i64::MAX);

/// A request of another program.
#[derive(Debug)]
pub struct ApiRequest {
    /// The text that is continued.
    pub prompt: ApiPrompt,
    /// Overrides of the model's sampling parameters.
    pub sampling: SamplingSettings,
    /// Maximum tokens of the answer; `None`: until the context is full.
    pub max_tokens: Option<usize>,
    /// Maximum tokens of thinking; `None`: left to the model.
    pub thinking_budget: Option<usize>,
    /// Form of the answer.
    pub constraint: Option<Constraint>,
    /// Number of the likeliest tokens that are reported with the log-probability of each token; `None` reports nothing.
    pub logprobs: Option<usize>,
    /// Flags that are polled.
    pub signals: Signals,
}

impl ApiRequest {
    fn thinks(&self, info: &ModelInfo) -> bool {
        match &self.prompt {
            ApiPrompt::Conversation(conversation) => conversation.thinking && info.can_think,
            ApiPrompt::Text(_) => false,
        }
    }

    /// Renders the prompt.
    pub(crate) fn prompt(
        &self,
        host: &mut dyn ModelHost,
        info: &ModelInfo,
    ) -> Result<Prompt, Failure> {
        match &self.prompt {
            ApiPrompt::Conversation(conversation) => {
                let conversation = Conversation {
                    thinking: self.thinks(info),
                    ..conversation.clone()
                };
                host.prompt(&conversation, &self.signals.cancel)
            }
            ApiPrompt::Text(text) => host.text_prompt(text),
        }
    }

    /// Fails if this model cannot answer it: it has tools, or a prompt that is certainly too long. To encode that would take
    /// long.
    pub(crate) fn check(
        &self,
        info: &ModelInfo,
        counter: Option<&dyn PromptCounter>,
    ) -> Result<(), Failure> {
        if let ApiPrompt::Conversation(conversation) = &self.prompt
            && !conversation.tools.is_empty()
            && !info.can_call_tools
        {
            let message = "This model cannot call tools.";
            return Err(Failure::new(FailureCode::BadForm, message));
        }
        let least = least_tokens(&self.prompt.texts(), info, counter);
        if least > info.context_length {
            let message = format!(
                "the conversation is too long: at least {} in a context of {}",
                figures::tokens(least),
                figures::count(info.context_length)
            );
            return Err(Failure::new(FailureCode::TooLong, message));
        }
        Ok(())
    }

    /// Returns the parameters of the answer.
    pub(crate) fn params(&self, info: &ModelInfo) -> GenerateParams {
        GenerateParams {
            sampling: self.sampling.over(info.sampling.of(self.thinks(info))),
            max_tokens: self.max_tokens,
            thinking_budget: self.thinking_budget,
            goes_on: false,
            lookup: true,
            stops_repetition: false,
            logprobs: self.logprobs,
            constraint: self.constraint.clone(),
        }
    }
}

/// The text that an answer continues.
#[derive(Debug)]
pub enum ApiPrompt {
    /// A conversation. Thinking is left out if the model cannot think.
    Conversation(Conversation),
    /// Plain text, without a template.
    Text(String),
}

impl ApiPrompt {
    /// Returns all texts that a prompt has.
    fn texts(&self) -> Vec<Cow<'_, str>> {
        let conversation = match self {
            ApiPrompt::Text(text) => return vec![text.into()],
            ApiPrompt::Conversation(conversation) => conversation,
        };
        let mut texts: Vec<Cow<'_, str>> = Vec::new();
        texts.extend(conversation.instructions.as_deref().map(Cow::from));
        for tool in &*conversation.tools {
            texts.extend([&tool.name, &tool.description].map(Cow::from));
            texts.push(tool.parameters.to_string().into());
        }
        for turn in &conversation.messages {
            texts.push(Cow::from(&turn.text));
            texts.extend(turn.calls.iter().map(|call| Cow::from(&call.arguments)));
        }
        texts
    }
}

/// Returns the number of tokens of these texts, at least. Long ones are counted until it is beyond the context.
fn least_tokens(
    texts: &[Cow<'_, str>],
    info: &ModelInfo,
    counter: Option<&dyn PromptCounter>,
) -> usize {
    /// Bytes per token above which a text that fits is rare.
    const MANY: usize = 8;
    /// Bytes that are counted at once.
    const PART: usize = 64 << 10;
    let bytes: usize = texts.iter().map(|text| text.len()).sum();
    let least = bytes / info.longest_token.max(1);
    let Some(counter) = counter.filter(|_| bytes / MANY > info.context_length) else {
        return least;
    };
    let mut counted = 0;
    for mut rest in texts.iter().map(|text| &**text) {
        while !rest.is_empty() && counted <= info.context_length {
            let (part, behind) = rest.split_at(rest.floor_char_boundary(PART));
            // A token may stand across the border.
            counted += counter.count(part).saturating_sub(1);
            rest = behind;
        }
    }
    least.max(counted)
}

/// Progress of a request.
pub enum ApiEvent<'a> {
    /// This model has taken it. Its tokenizer has the bytes of tokens.
    Begun(&'a ModelInfo, Option<Arc<dyn PromptCounter>>),
    /// An event of the generation.
    Generated(Event<'a>),
    /// The end, after which nothing comes.
    Ended(Result<Finished, Failure>),
}

/// Receiver of the progress, on the model thread: it must be quick.
pub type ApiListener = Box<dyn FnMut(ApiEvent<'_>) + Send>;

/// The model for other programs.
#[derive(Clone)]
pub struct ServedModel {
    /// Its name. It may be unloaded, or still be opened.
    pub name: String,
    /// The open model.
    pub info: Option<ModelInfo>,
    /// Tokenizer of the open model.
    pub counter: Option<Arc<dyn PromptCounter>>,
}

/// A request that waits or runs. Reports its end even if it is dropped.
pub(crate) struct ApiJob {
    request: ApiRequest,
    output: ApiOutput,
}

/// The listener of a request.
pub(crate) struct ApiOutput {
    /// `None` after the end.
    listener: Option<ApiListener>,
    /// Shared by all requests that the actor has taken and that have not ended.
    running: Option<Arc<()>>,
}

impl ApiJob {
    pub fn new(request: ApiRequest, listener: ApiListener) -> ApiJob {
        ApiJob {
            request,
            output: ApiOutput {
                listener: Some(listener),
                running: None,
            },
        }
    }

    /// Counts the request as running until it ends.
    pub fn counted(mut self, running: &Arc<()>) -> ApiJob {
        self.output.running = Some(Arc::clone(running));
        self
    }

    pub fn is_cancelled(&self) -> bool {
        self.request.signals.is_cancelled()
    }

    pub fn into_parts(self) -> (ApiRequest, ApiOutput) {
        (self.request, self.output)
    }
}

impl ApiOutput {
    pub fn begin(&mut self, info: &ModelInfo, counter: Option<Arc<dyn PromptCounter>>) {
        self.report(ApiEvent::Begun(info, counter));
    }

    pub fn generated(&mut self, event: Event<'_>) {
        self.report(ApiEvent::Generated(event));
    }

    pub fn end(mut self, result: Result<Finished, Failure>) {
        self.report(ApiEvent::Ended(result));
        self.listener = None;
    }

    /// Ends the request because the model goes.
    pub fn withdraw(&mut self) {
        let failure = Failure::new(FailureCode::NoModel, "The model was closed or changed.");
        self.report(ApiEvent::Ended(Err(failure)));
        self.listener = None;
    }

    fn report(&mut self, event: ApiEvent<'_>) {
        if let Some(listener) = &mut self.listener {
            listener(event);
        }
    }
}

impl Drop for ApiOutput {
    fn drop(&mut self) {
        self.withdraw();
    }
}
