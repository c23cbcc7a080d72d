//! Actions of a scripted model beside answering.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chat::ChatId;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Beside {
    /// Restore before a prompt with these last words.
    Resume(ChatId, String),
    /// Prefill of a draft with these last words.
    ReadAhead(ChatId, String),
    /// Prefill of a chat with these last words, without a draft.
    ReadChat(ChatId, String),
    /// A question outside a chat.
    Aside(String),
    Interrupted,
    Save,
    MakeRoom,
    Relabel(ChatId, ChatId),
    Forget(Vec<ChatId>),
    Retain(Vec<ChatId>),
}

#[derive(Clone, Default)]
pub struct BesideLog(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    done: Vec<Beside>,
    caches: usize,
    save_panics: bool,
    held: bool,
}

impl BesideLog {
    pub fn push(&self, done: Beside) {
        self.0.lock().unwrap().done.push(done);
    }

    /// Adds an action that lasts while it is held, or until it is interrupted.
    pub fn push_held(&self, done: Beside, cancel: &AtomicBool) {
        self.push(done);
        while self.is_held() {
            if cancel.load(Ordering::Relaxed) {
                return self.push(Beside::Interrupted);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn is_held(&self) -> bool {
        self.0.lock().unwrap().held
    }

    /// Makes restore and prefill last until they are interrupted, or ends that.
    pub fn hold(&self, held: bool) {
        self.0.lock().unwrap().held = held;
    }

    /// Makes the next save panic.
    pub fn panic_when_saving(&self) {
        self.0.lock().unwrap().save_panics = true;
    }

    /// Gives the model this many caches to save.
    pub fn set_caches(&self, caches: usize) {
        self.0.lock().unwrap().caches = caches;
    }

    /// Waits until there are at least `count` actions, and returns them.
    pub fn at_least(&self, count: usize) -> Vec<Beside> {
        for _ in 0..2000 {
            let done = self.0.lock().unwrap().done.clone();
            if done.len() >= count {
                return done;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("it did only {:?}", self.0.lock().unwrap().done);
    }

    /// Waits for this action, and returns the actions.
    pub fn until(&self, wanted: &Beside) -> Vec<Beside> {
        let mut done = self.at_least(1);
        while !done.contains(wanted) {
            done = self.at_least(done.len() + 1);
        }
        done
    }

    /// Saves a cache; returns whether there is another.
    pub fn save(&self) -> bool {
        self.push(Beside::Save);
        std::thread::sleep(Duration::from_millis(1));
        let (left, panics) = {
            let mut inner = self.0.lock().unwrap();
            inner.caches = inner.caches.saturating_sub(1);
            (inner.caches, std::mem::take(&mut inner.save_panics))
        };
        assert!(!panics, "the kernel broke");
        left > 0
    }
}
