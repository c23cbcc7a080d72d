//! What a scripted model does beside answering.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chat::ChatId;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Beside {
    /// Before a prompt with these last words.
    Resume(ChatId, String),
    /// A draft with these last words.
    ReadAhead(ChatId, String),
    Idle,
    Interrupted,
    Retain(Vec<ChatId>),
}

/// What was done, and how many steps of idle work are left.
#[derive(Clone, Default)]
pub struct BesideLog(Arc<Mutex<(Vec<Beside>, usize)>>);

impl BesideLog {
    pub fn push(&self, done: Beside) {
        self.0.lock().unwrap().0.push(done);
    }

    /// Gives the model this many steps of idle work; more than ten: one that lasts until it is interrupted.
    pub fn set_idle_steps(&self, steps: usize) {
        self.0.lock().unwrap().1 = steps;
    }

    /// What was done, once it was as much as `count`.
    pub fn at_least(&self, count: usize) -> Vec<Beside> {
        for _ in 0..2000 {
            let done = self.0.lock().unwrap().0.clone();
            if done.len() >= count {
                return done;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("it did only {:?}", self.0.lock().unwrap().0);
    }

    /// A step of idle work; whether there is another.
    pub fn idle(&self, cancel: &AtomicBool) -> bool {
        self.push(Beside::Idle);
        let left = self.0.lock().unwrap().1;
        self.set_idle_steps(if left > 10 { 0 } else { left.saturating_sub(1) });
        if left > 10 {
            while !cancel.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
            self.push(Beside::Interrupted);
        }
        left > 1
    }
}
