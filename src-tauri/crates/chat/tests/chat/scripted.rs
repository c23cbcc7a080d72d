//! A scripted model.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chat::{
    ChatId, Device, Failure, FailureCode, ModelChoice, ModelHost, ModelInfo, ModelOptions, Opening,
    PromptCounter,
};
use inference::{
    Constraint, Conversation, Event, Finished, GenerateParams, ModelRequest, Prompt, RequestId,
    Role, Sampling, SamplingDefaults, StopReason, Turn,
};
use jiff::civil::Date;

pub use crate::bench::Bench;
use crate::beside::{Beside, BesideLog};
pub use crate::clocks::{SteppingClock, TIMING, TODAY};
use crate::counter::CounterLog;
use crate::running::{Answering, Go, ScriptedRequest};
pub use crate::shown::{last_row, open, texts};

/// Timeout of events: longer than any test takes, and short enough to fail.
pub const EVENT_TIMEOUT: Duration = Duration::from_secs(10);

/// Bytes of the scripted model's longest token.
pub const LONGEST_TOKEN: usize = 256;

/// One step of a scripted answer.
#[derive(Clone, Copy)]
pub enum Step {
    Read(usize, usize),
    Think(&'static str),
    Say(&'static str),
    Tag(u32),
    /// A token of a call.
    CallToken,
    /// A complete call: the tool and its arguments.
    Call(&'static str, &'static str),
    Sleep(u64),
    /// Waits until the test continues it, or it is cancelled.
    Wait,
    /// Thinks until the answer is requested.
    ThinkOn(&'static str),
    /// Tokens that come despite a cancel.
    LastWords(&'static [&'static str]),
    /// Ignores cancel: it goes on until the sender of [`Script::stuck`] is dropped.
    Stuck,
    Fail(&'static str),
    Panic,
    End(StopReason),
}

/// Input of an answer.
#[derive(Clone)]
pub struct Asked {
    pub history: Vec<Turn>,
    pub instructions: Option<String>,
    pub thinking: bool,
    pub today: Date,
    pub sampling: Sampling,
    pub max_tokens: Option<usize>,
    pub thinking_budget: Option<usize>,
    pub goes_on: bool,
    pub lookup: bool,
    pub constraint: Option<Constraint>,
    /// Names of the tools.
    pub tools: Vec<String>,
    /// True if the last message of the history is to be continued.
    pub resume: bool,
}

impl Asked {
    fn new(conversation: Conversation, params: &GenerateParams) -> Asked {
        Asked {
            resume: conversation.messages.last().is_some_and(|turn| turn.open),
            history: conversation.messages,
            instructions: conversation.instructions,
            thinking: conversation.thinking,
            today: conversation.today,
            sampling: params.sampling.clone(),
            max_tokens: params.max_tokens,
            thinking_budget: params.thinking_budget,
            goes_on: params.goes_on,
            lookup: params.lookup,
            constraint: params.constraint.clone(),
            tools: conversation
                .tools
                .iter()
                .map(|tool| tool.name.clone())
                .collect(),
        }
    }
}

/// State shared by the test and the scripted model.
#[derive(Clone, Default)]
pub struct Script(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    answers: Vec<Vec<Step>>,
    turns: Vec<Asked>,
    /// Conversations of all prompts; the first id of a prompt is the index of its own.
    prompted: Vec<Conversation>,
    opens: Vec<(ModelChoice, ModelOptions)>,
    bad: Vec<ModelChoice>,
    crashed: Vec<ModelChoice>,
    slow_open: Option<Receiver<()>>,
    open_panics: bool,
    prompt_panics: bool,
    go: Option<Go>,
    context: usize,
    name: Option<String>,
    fingerprint: Option<String>,
    closes: usize,
    slow_prompt: bool,
    cannot_think: bool,
    moves: bool,
    stuck: Option<Receiver<()>>,
    slow_drop: Option<Receiver<()>>,
    beside: BesideLog,
    counter: CounterLog,
    last_prompt: usize,
    title: Option<&'static str>,
}

impl Script {
    /// Sets the next answer. Without one the model says "Yes."
    pub fn answer(&self, steps: impl Into<Vec<Step>>) {
        self.0.lock().unwrap().answers.push(steps.into());
    }
    pub fn turns(&self) -> Vec<Asked> {
        self.0.lock().unwrap().turns.clone()
    }
    pub fn last_turn(&self) -> Asked {
        self.turns().last().expect("a turn").clone()
    }
    pub fn opens(&self) -> Vec<(ModelChoice, ModelOptions)> {
        self.0.lock().unwrap().opens.clone()
    }
    pub fn refuse(&self, choice: ModelChoice) {
        self.0.lock().unwrap().bad.push(choice);
    }
    /// Makes the model open only on request.
    pub fn crashed(&self, choice: ModelChoice) {
        self.0.lock().unwrap().crashed.push(choice);
    }
    /// Makes opening wait until the sender is used or dropped.
    pub fn slow_open(&self) -> Sender<()> {
        let (go, wait) = channel();
        self.0.lock().unwrap().slow_open = Some(wait);
        go
    }
    /// Makes the encoding of every prompt panic.
    pub fn panic_at_prompts(&self) {
        self.0.lock().unwrap().prompt_panics = true;
    }
    pub fn panic_at_open(&self) {
        self.0.lock().unwrap().open_panics = true;
    }
    /// Makes one `Step::Wait` continue each time the sender is used.
    pub fn go(&self) -> Sender<()> {
        let (go, wait) = channel();
        self.0.lock().unwrap().go = Some(Arc::new(Mutex::new(wait)));
        go
    }
    /// Removes the thinking mode of the models.
    pub fn cannot_think(&self) {
        self.0.lock().unwrap().cannot_think = true;
    }
    /// Makes the next answer fail over to another device.
    pub fn moves(&self) {
        self.0.lock().unwrap().moves = true;
    }
    pub fn stuck(&self) -> Sender<()> {
        let (go, wait) = channel();
        self.0.lock().unwrap().stuck = Some(wait);
        go
    }
    /// Makes the model wait for the sender's drop before its own.
    pub fn slow_drop(&self) -> Sender<()> {
        let (go, wait) = channel();
        self.0.lock().unwrap().slow_drop = Some(wait);
        go
    }
    pub fn context(&self, tokens: usize) {
        self.0.lock().unwrap().context = tokens;
    }
    /// Sets the name of the models.
    pub fn name(&self, name: &str) {
        self.0.lock().unwrap().name = Some(name.to_owned());
    }
    /// Sets the fingerprint of their files.
    pub fn fingerprint(&self, fingerprint: &str) {
        self.0.lock().unwrap().fingerprint = Some(fingerprint.to_owned());
    }
    /// Returns the number of closed models.
    pub fn closes(&self) -> usize {
        self.0.lock().unwrap().closes
    }
    /// Returns the conversations of all prompts, in order.
    pub fn prompted(&self) -> Vec<Conversation> {
        self.0.lock().unwrap().prompted.clone()
    }
    /// Returns the tokens of the last prompt that was generated from.
    pub fn last_prompt(&self) -> usize {
        self.0.lock().unwrap().last_prompt
    }
    /// Returns the log of the model's actions beside answering.
    pub fn beside(&self) -> BesideLog {
        self.0.lock().unwrap().beside.clone()
    }
    /// Begins the script of an answer.
    pub fn begin(&self, prompt: &Prompt, params: &GenerateParams) -> Answering {
        let mut inner = self.0.lock().unwrap();
        let conversation = inner.prompted[prompt.ids[0] as usize].clone();
        inner.turns.push(Asked::new(conversation, params));
        inner.last_prompt = prompt.ids.len();
        let steps = if inner.answers.is_empty() {
            vec![Step::Say("Yes.")]
        } else {
            inner.answers.remove(0)
        };
        Answering::new(steps, inner.go.clone(), inner.stuck.take())
    }
    fn take_move(&self) -> bool {
        std::mem::take(&mut self.0.lock().unwrap().moves)
    }
    /// Returns the title that the models give.
    pub fn its_title(&self) -> Option<&'static str> {
        self.0.lock().unwrap().title
    }
    pub fn ends_with_question(&self, prompt: &Prompt) -> bool {
        let conversation = &self.0.lock().unwrap().prompted[prompt.ids[0] as usize];
        let last = conversation.messages.last();
        last.is_some_and(|turn| turn.role == Role::User)
    }
    /// Returns the counter of the model's prompts.
    pub fn counter(&self) -> CounterLog {
        self.0.lock().unwrap().counter.clone()
    }
    pub fn last_words(&self, prompt: &Prompt) -> String {
        let conversation = &self.0.lock().unwrap().prompted[prompt.ids[0] as usize];
        let last = conversation.messages.last();
        last.map_or(String::new(), |turn| turn.text.clone())
    }
    /// Sets the title that the models give; without it they hold another chat.
    pub fn title(&self, title: &'static str) {
        self.0.lock().unwrap().title = Some(title);
    }
    /// Makes rendering a prompt last until it is cancelled.
    pub fn slow_prompt(&self) {
        self.0.lock().unwrap().slow_prompt = true;
    }
}

pub struct Scripted {
    script: Script,
    open: Option<ModelInfo>,
    requests: Vec<ScriptedRequest>,
}

impl Scripted {
    pub fn new(script: &Script) -> Scripted {
        Scripted {
            script: script.clone(),
            open: None,
            requests: Vec::new(),
        }
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        let slow = self.script.0.lock().unwrap().slow_drop.take();
        let _ = slow.as_ref().map(Receiver::recv);
    }
}

impl ModelHost for Scripted {
    fn refusal(&self, model: &ModelChoice) -> Option<Failure> {
        let crashed = self.script.0.lock().unwrap().crashed.contains(model);
        crashed.then(|| Failure::new(FailureCode::Crashed, format!("{model:?} crashed")))
    }

    fn open(
        &mut self,
        model: &ModelChoice,
        options: &ModelOptions,
        on_progress: &mut dyn FnMut(Opening),
    ) -> Result<ModelInfo, Failure> {
        let (bad, slow, panics, context, named) = {
            let mut inner = self.script.0.lock().unwrap();
            inner.opens.push((model.clone(), options.clone()));
            let bad = inner.bad.contains(model);
            let panics = std::mem::take(&mut inner.open_panics);
            let named = inner.name.clone();
            (bad, inner.slow_open.take(), panics, inner.context, named)
        };
        on_progress(Opening::Checking);
        on_progress(Opening::Loading(0.5));
        if let Some(slow) = slow {
            let _ = slow.recv();
        }
        assert!(!panics, "the loader broke");
        if bad {
            // The model before is reopened with the present content of its file.
            let held = self.script.0.lock().unwrap().fingerprint.clone();
            if let Some((open, held)) = self.open.as_mut().zip(held) {
                open.fingerprint = held;
            }
            return Err(Failure::new(
                FailureCode::BadModel,
                format!("{model:?} is not a model"),
            ));
        }
        let (name, file) = match model {
            ModelChoice::BundledModel => ("SmolLM2-135M-Instruct".to_owned(), None),
            ModelChoice::File(path) => (
                path.file_stem().unwrap().to_string_lossy().into_owned(),
                Some(path.clone()),
            ),
        };
        let fingerprint = self.script.0.lock().unwrap().fingerprint.clone();
        let info = ModelInfo {
            fingerprint: fingerprint.unwrap_or_else(|| name.clone()),
            name: named.unwrap_or(name),
            bundled_model: file.is_none(),
            file: file.map(|path: std::path::PathBuf| path.display().to_string()),
            quantisation: "Q4_K_M".into(),
            file_bytes: 1000,
            context_length: if context == 0 { 4096 } else { context },
            context_note: None,
            context_can_grow: false,
            longest_token: LONGEST_TOKEN,
            kv_bytes: 4096,
            chat_format: "SmolLM3".into(),
            can_think: !self.script.0.lock().unwrap().cannot_think,
            sampling: SamplingDefaults {
                with_thinking: Sampling {
                    temperature: 0.25,
                    top_p: 0.5,
                    top_k: 20,
                    min_p: 0.125,
                    repeat_penalty: 1.5,
                    ..Sampling::default()
                },
                without_thinking: Sampling {
                    temperature: 0.75,
                    ..Sampling::default()
                },
            },
            device: Device {
                on_gpu: false,
                name: "CPU".into(),
                reason: "scripted".into(),
                report: None,
            },
            can_call_tools: true,
        };
        self.open = Some(info.clone());
        self.requests.clear();
        Ok(info)
    }

    fn close(&mut self) {
        self.script.0.lock().unwrap().closes += 1;
        self.open = None;
        self.requests.clear();
    }

    fn info(&self) -> Option<&ModelInfo> {
        self.open.as_ref()
    }

    fn submit(&mut self, request: ModelRequest) -> Result<(), Failure> {
        if let Some(open) = self.open.as_mut().filter(|_| self.script.take_move()) {
            open.device.reason = "The GPU failed.".into();
        }
        self.requests.push(ScriptedRequest::new(request));
        self.requests.sort_by_key(|it| it.request.priority);
        Ok(())
    }

    fn step(
        &mut self,
        preempt: &AtomicBool,
        on_event: &mut dyn FnMut(RequestId, Event<'_>),
    ) -> Vec<(RequestId, Result<Finished, Failure>)> {
        let is_answering = self
            .requests
            .iter()
            .any(|it| it.request.priority.is_answer());
        let running = if is_answering { self.requests.len() } else { 1 };
        let mut ended = Vec::new();
        for running in self.requests.iter_mut().take(running) {
            if is_answering && !running.request.priority.is_answer() {
                continue;
            }
            if let Some(end) = running.step(&self.script, preempt, on_event) {
                ended.push((running.request.id, end));
            }
        }
        self.requests
            .retain(|it| !ended.iter().any(|(id, _)| *id == it.request.id));
        ended
    }

    fn save_caches(&mut self) -> bool {
        self.script.beside().save()
    }

    fn make_room(&mut self) {
        self.script.beside().push(Beside::MakeRoom);
    }

    fn relabel(&mut self, from: ChatId, to: ChatId) {
        self.script.beside().push(Beside::Relabel(from, to));
    }

    fn forget(&mut self, chats: &[ChatId]) {
        self.script.beside().push(Beside::Forget(chats.to_vec()));
    }

    fn retain_chats(&mut self, chats: &[ChatId]) {
        let step = Beside::Retain(chats.to_vec());
        self.script.beside().push(step);
    }

    fn counter(&self) -> Option<Arc<dyn PromptCounter>> {
        self.open.as_ref()?;
        Some(Arc::new(self.script.counter()))
    }

    /// Counts a token per word, and ten for the header.
    fn prompt(
        &mut self,
        conversation: &Conversation,
        cancel: &AtomicBool,
    ) -> Result<Prompt, Failure> {
        let panics = self.script.0.lock().unwrap().prompt_panics;
        assert!(!panics, "the encoder broke");
        let (index, slow) = {
            let mut inner = self.script.0.lock().unwrap();
            inner.prompted.push(conversation.clone());
            (inner.prompted.len() - 1, inner.slow_prompt)
        };
        while slow && !cancel.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        if cancel.load(Ordering::Relaxed) {
            return Err(Failure::new(FailureCode::Other, "cancelled"));
        }
        let words = |text: &str| text.split_whitespace().count();
        let messages = conversation.messages.iter();
        let said: usize = messages
            .map(|m| words(&m.text) + m.thinking.as_deref().map_or(0, words))
            .sum();
        let index = u32::try_from(index).unwrap();
        Ok(Prompt::of_ids(vec![index; 10 + said]))
    }
}
