//! Requests that a scripted model runs.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chat::{ChatId, Failure, FailureCode};
use inference::{
    Event, Finished, ModelRequest, Priority, RequestId, Stats, StopReason, ThinkingCut, TokenKind,
};

use crate::beside::Beside;
use crate::scripted::{Script, Step};

const PAUSE: Duration = Duration::from_millis(1);

/// Receiver of what lets one answer that waits continue.
pub type Go = Arc<Mutex<Receiver<()>>>;

/// A request, and the rest of its script once it has begun.
pub struct ScriptedRequest {
    pub request: ModelRequest,
    answering: Option<Answering>,
}

/// An answer that follows its script.
pub struct Answering {
    steps: VecDeque<Step>,
    go: Option<Go>,
    stuck: Option<Receiver<()>>,
    tokens: u32,
    thinking_cut: Option<ThinkingCut>,
    /// True while the first step waits.
    waits: bool,
}

impl Answering {
    pub fn new(steps: Vec<Step>, go: Option<Go>, stuck: Option<Receiver<()>>) -> Answering {
        Answering {
            steps: steps.into(),
            go,
            stuck,
            tokens: 0,
            thinking_cut: None,
            waits: false,
        }
    }
}

impl ScriptedRequest {
    pub fn new(request: ModelRequest) -> ScriptedRequest {
        ScriptedRequest {
            request,
            answering: None,
        }
    }

    /// Runs one step. Returns the end, if it is the last.
    pub fn step(
        &mut self,
        script: &Script,
        preempt: &AtomicBool,
        on_event: &mut dyn FnMut(RequestId, Event<'_>),
    ) -> Option<Result<Finished, Failure>> {
        match self.request.priority {
            Priority::Answer | Priority::Api => self.answer(script, on_event),
            Priority::ReadAhead => self.read_ahead(script, preempt),
            Priority::Title => self.title(script, preempt, on_event),
        }
        .map(|end| end.map(|reason| self.finished(reason)))
    }

    fn chat(&self) -> ChatId {
        ChatId(self.request.conversation.cast_signed())
    }

    fn read_ahead(
        &self,
        script: &Script,
        preempt: &AtomicBool,
    ) -> Option<Result<StopReason, Failure>> {
        if self.request.signals.is_cancelled() {
            return Some(Ok(StopReason::Cancelled));
        }
        let (chat, prompt) = (self.chat(), &self.request.prompt);
        let words = script.last_words(prompt);
        let resume = Beside::Resume(chat, words.clone());
        script.beside().push_held(resume, preempt);
        let ahead = if script.ends_with_question(prompt) {
            Beside::ReadAhead(chat, words)
        } else {
            Beside::ReadChat(chat, words)
        };
        script.beside().push_held(ahead, preempt);
        (!preempt.load(Ordering::Relaxed)).then_some(Ok(StopReason::EndOfTurn))
    }

    fn title(
        &self,
        script: &Script,
        preempt: &AtomicBool,
        on_event: &mut dyn FnMut(RequestId, Event<'_>),
    ) -> Option<Result<StopReason, Failure>> {
        let title = script
            .its_title()
            .filter(|_| !self.request.signals.is_cancelled());
        let Some(title) = title else {
            return Some(Ok(StopReason::Cancelled));
        };
        assert_eq!(self.request.params.thinking_budget, Some(0));
        let question = script.last_words(&self.request.prompt);
        script.beside().push_held(Beside::Aside(question), preempt);
        if preempt.load(Ordering::Relaxed) {
            return None;
        }
        on_event(self.request.id, token(1, title, TokenKind::Answer));
        Some(Ok(StopReason::EndOfTurn))
    }

    fn answer(
        &mut self,
        script: &Script,
        on_event: &mut dyn FnMut(RequestId, Event<'_>),
    ) -> Option<Result<StopReason, Failure>> {
        let ModelRequest {
            id,
            prompt,
            params,
            signals,
            ..
        } = &self.request;
        let on_event = &mut |event: Event<'_>| on_event(*id, event);
        if self.answering.is_none() {
            let beside = script.beside();
            if beside.is_held() {
                on_event(reading(1, prompt.ids.len(), 1));
            }
            let words = script.last_words(prompt);
            beside.push_held(Beside::Resume(self.chat(), words), &signals.cancel);
        }
        let it = self
            .answering
            .get_or_insert_with(|| script.begin(prompt, params));
        // A wait ends by it, and the step behind may not heed it.
        let heeds_cancel = !it.waits
            && !matches!(
                it.steps.front(),
                Some(Step::LastWords(_) | Step::Panic | Step::Wait)
            );
        if signals.is_cancelled() && heeds_cancel {
            return Some(Ok(StopReason::Cancelled));
        }
        let Some(step) = it.steps.pop_front() else {
            return Some(Ok(StopReason::EndOfTurn));
        };
        let mut say = |id: u32, text, kind| {
            on_event(token(id, text, kind));
        };
        let next = 100 + it.tokens;
        match step {
            Step::Read(done, total) => on_event(reading(done, total, 0)),
            Step::Think(text) => say(next, text, TokenKind::Thinking),
            Step::ThinkOn(text) => {
                if !it.waits {
                    say(next, text, TokenKind::Thinking);
                }
                it.waits = !signals.answer_now.load(Ordering::Relaxed) && !signals.is_cancelled();
                it.thinking_cut = Some(ThinkingCut::AnswerNow);
                if it.waits {
                    std::thread::sleep(PAUSE);
                    it.steps.push_front(step);
                    return None;
                }
            }
            Step::Say(text) => say(next, text, TokenKind::Answer),
            Step::Tag(id) => say(id, "<tag>", TokenKind::Control),
            Step::CallToken => say(next, "", TokenKind::Call),
            Step::Call(name, arguments) => {
                say(next, "", TokenKind::Call);
                on_event(Event::Call { name, arguments });
            }
            Step::LastWords(texts) => {
                for text in texts {
                    it.tokens += 1;
                    say(100 + it.tokens, text, TokenKind::Answer);
                }
            }
            Step::Stuck => {
                let _ = it.stuck.as_ref().map(Receiver::recv);
            }
            Step::Sleep(ms) => std::thread::sleep(Duration::from_millis(ms)),
            Step::Wait => {
                let go = it.go.as_ref().map(|go| go.lock().unwrap().try_recv());
                it.waits = !matches!(go, Some(Ok(()))) && !signals.is_cancelled();
                if it.waits {
                    std::thread::sleep(PAUSE);
                    it.steps.push_front(step);
                    return None;
                }
            }
            Step::Fail(cause) => return Some(Err(Failure::new(FailureCode::Other, cause))),
            Step::Panic => panic!("the kernel broke"),
            Step::End(wanted) => return Some(Ok(wanted)),
        }
        let is_token = matches!(
            step,
            Step::Think(_)
                | Step::ThinkOn(_)
                | Step::Say(_)
                | Step::Tag(_)
                | Step::CallToken
                | Step::Call(..)
        );
        it.tokens += u32::from(is_token);
        None
    }

    fn finished(&self, reason: StopReason) -> Finished {
        let answering = self.answering.as_ref();
        // A cancel during the last step counts too.
        let is_cancelled = self.request.signals.is_cancelled();
        Finished {
            reason: if is_cancelled {
                StopReason::Cancelled
            } else {
                reason
            },
            stats: Stats {
                prompt_tokens: 10,
                tokens: answering.map_or(0, |it| it.tokens as usize),
                thinking_cut: answering.and_then(|it| it.thinking_cut),
                first_token_ms: 1.0,
                tokens_per_second: 10.0,
                read_per_second: 100.0,
                seed: self.request.params.sampling.seed.unwrap_or(7),
                ..Stats::default()
            },
        }
    }
}

fn token(id: u32, piece: &str, kind: TokenKind) -> Event<'_> {
    Event::Token { id, piece, kind }
}

fn reading(done: usize, total: usize, cached: usize) -> Event<'static> {
    Event::Prefill {
        done,
        total,
        cached,
    }
}
