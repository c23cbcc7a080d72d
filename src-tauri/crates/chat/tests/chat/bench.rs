//! A chat over a scripted model, whose events can be waited for.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};

use chat::{Chat, ChatEvent, ChatId, ChatView, Clock, Message, ModelChoice, Timing};
use inference::Part;
use store::Store;

use crate::clocks::{FixedClock, TIMING, TODAY};
use crate::scripted::{EVENT_TIMEOUT, Script, Scripted, Step};

/// A chat over a scripted model.
pub struct Bench {
    pub chat: Chat,
    pub script: Script,
    pub events: Receiver<ChatEvent>,
}

impl Bench {
    /// Makes a bench in memory, with its bundled model open.
    pub fn new() -> Bench {
        Bench::scripted(&Script::default())
    }

    pub fn scripted(script: &Script) -> Bench {
        let mut bench = Bench::start(Store::in_memory().unwrap(), script, TODAY);
        bench.until_ready();
        bench
    }

    pub fn on_file(path: &Path, script: &Script) -> Bench {
        Bench::start(Store::open(path).unwrap(), script, TODAY)
    }

    pub fn start(store: Store, script: &Script, now: &'static str) -> Bench {
        Bench::timed(store, script, now, TIMING)
    }

    pub fn timed(store: Store, script: &Script, now: &'static str, timing: Timing) -> Bench {
        Bench::clocked(store, script, Box::new(FixedClock(now)), timing)
    }

    pub fn clocked(store: Store, script: &Script, clock: Box<dyn Clock>, timing: Timing) -> Bench {
        let (tell, events) = channel();
        let on_event = Box::new(move |event| {
            let _ = tell.send(event);
        });
        let generate = Box::new(Scripted::new(script));
        let chat = Chat::start_with(store, generate, clock, timing, on_event).unwrap();
        Bench {
            chat,
            script: script.clone(),
            events,
        }
    }

    /// Makes a bench on a file, started with a model.
    pub fn given(path: &Path, script: &Script, model: ModelChoice) -> Bench {
        let (tell, events) = channel();
        let on_event = Box::new(move |event| {
            let _ = tell.send(event);
        });
        let generate = Box::new(Scripted::new(script));
        let store = Store::open(path).unwrap();
        let chat = Chat::start_on(Some(model), store, generate, on_event).unwrap();
        Bench {
            chat,
            script: script.clone(),
            events,
        }
    }

    /// Returns the events up to the first one that is wanted.
    pub fn until(&mut self, wanted: impl Fn(&ChatEvent) -> bool) -> Vec<ChatEvent> {
        let mut seen = Vec::new();
        loop {
            let event = self.events.recv_timeout(EVENT_TIMEOUT);
            let event =
                event.unwrap_or_else(|_| panic!("the awaited event did not come; came: {seen:#?}"));
            let found = wanted(&event);
            seen.push(event);
            if found {
                return seen;
            }
        }
    }

    pub fn until_ready(&mut self) {
        self.until(
            |event| matches!(event, ChatEvent::Model { model } if model.status.ready().is_some()),
        );
    }

    /// Returns the next answer that ends.
    pub fn until_ended(&mut self) -> Message {
        match self
            .until(|event| matches!(event, ChatEvent::Ended { .. }))
            .pop()
        {
            Some(ChatEvent::Ended { message, .. }) => *message,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the text of the next delta.
    pub fn until_delta(&mut self) -> String {
        match self
            .until(|event| matches!(event, ChatEvent::Delta { .. }))
            .pop()
        {
            Some(ChatEvent::Delta { parts, .. }) => parts.0.iter().map(Part::content).collect(),
            other => panic!("{other:?}"),
        }
    }

    /// Begins the answer "first" to "One" in a chat of its own. It ends when the sender is used.
    pub fn begin_first(&mut self) -> (ChatView, Sender<()>) {
        let go = self.script.go();
        self.script.answer([Step::Say("first"), Step::Wait]);
        let view = self.chat.send(None, "One", true).unwrap();
        self.until_delta();
        (view, go)
    }

    /// Sends a question and waits for the answer's end. Returns the chat afterwards.
    pub fn ask(&mut self, chat: Option<ChatId>, text: &str) -> ChatView {
        let view = self.chat.send(chat, text, true).unwrap();
        self.until_ended();
        self.chat.open_chat(view.chat.id).unwrap()
    }
}
