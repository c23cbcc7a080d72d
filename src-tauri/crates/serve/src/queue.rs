//! Places for answers, and the queue of those that wait for one. A free place goes to the client with the fewest answers;
//! among equals, to the one that has waited longest.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::FromServer;
use tokio::sync::oneshot;

use crate::link::AppLink;

/// Answers at once.
const PLACES: usize = 8;
/// Requests that wait, at most.
pub const MOST_WAITING: usize = 64;

/// The queue. Clones share it.
#[derive(Clone)]
pub struct Queue(Arc<QueueParts>);

struct QueueParts {
    link: AppLink,
    state: Mutex<QueueState>,
}

#[derive(Default)]
struct QueueState {
    /// Places in use, by client.
    running: HashMap<String, usize>,
    waiting: VecDeque<Waiting>,
    next: u64,
}

struct Waiting {
    number: u64,
    client: String,
    ready: oneshot::Sender<()>,
}

/// A place, or one to come. Dropping it gives it back.
pub struct AnswerPlace {
    queue: Queue,
    client: String,
    /// Number in the queue, and the signal of the place; `None` once it is there.
    waits: Option<(u64, oneshot::Receiver<()>)>,
}

impl Queue {
    pub fn new(link: AppLink) -> Queue {
        Queue(Arc::new(QueueParts {
            link,
            state: Mutex::default(),
        }))
    }

    /// Takes places for a client, or queues for them; `None` if the queue is full.
    pub fn places(&self, client: &str, count: usize) -> Option<Vec<AnswerPlace>> {
        let mut state = self.state();
        let free = PLACES.saturating_sub(state.used());
        if count > free && state.waiting.len() + count - free > MOST_WAITING {
            return None;
        }
        let places = (0..count).map(|_| {
            let waits = if state.used() < PLACES {
                *state.running.entry(client.to_owned()).or_default() += 1;
                None
            } else {
                let (ready, signal) = oneshot::channel();
                state.next += 1;
                let number = state.next;
                state.waiting.push_back(Waiting {
                    number,
                    client: client.to_owned(),
                    ready,
                });
                Some((number, signal))
            };
            AnswerPlace {
                queue: self.clone(),
                client: client.to_owned(),
                waits,
            }
        });
        let places = places.collect();
        drop(state);
        self.report();
        Some(places)
    }

    /// Returns the numbers of places in use and of requests that wait.
    pub fn load(&self) -> (usize, usize) {
        let state = self.state();
        (state.used(), state.waiting.len())
    }

    fn report(&self) {
        let (running, waiting) = self.load();
        let count = |it: usize| u32::try_from(it).unwrap_or(u32::MAX);
        self.0.link.send(&FromServer::Load {
            running: count(running),
            waiting: count(waiting),
        });
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    fn used(&self) -> usize {
        self.running.values().sum()
    }

    fn of(&self, client: &str) -> usize {
        self.running.get(client).copied().unwrap_or(0)
    }

    /// Gives back the place of a client.
    fn free(&mut self, client: &str) {
        if let Some(count) = self.running.get_mut(client) {
            *count -= 1;
            if *count == 0 {
                self.running.remove(client);
            }
        }
        while self.used() < PLACES
            && let Some(at) = self.next()
            && let Some(next) = self.waiting.remove(at)
        {
            // It may have gone at this moment.
            if next.ready.send(()).is_ok() {
                *self.running.entry(next.client).or_default() += 1;
            }
        }
    }

    /// Index of the request that is next.
    fn next(&self) -> Option<usize> {
        let waiting = self.waiting.iter().enumerate();
        let next = waiting.min_by_key(|(_, it)| self.of(&it.client));
        next.map(|(at, _)| at)
    }
}

impl AnswerPlace {
    /// Waits for the place.
    pub async fn taken(&mut self) {
        if let Some((_, signal)) = &mut self.waits {
            // The queue outlives its places.
            let _ = signal.await;
            self.waits = None;
        }
    }
}

impl Drop for AnswerPlace {
    fn drop(&mut self) {
        let mut state = self.queue.state();
        match &mut self.waits {
            Some((number, signal)) => {
                let number = *number;
                let before = state.waiting.len();
                state.waiting.retain(|it| it.number != number);
                // The place came, and nobody has noticed it.
                if state.waiting.len() == before && signal.try_recv().is_ok() {
                    state.free(&self.client);
                }
            }
            None => state.free(&self.client),
        }
        drop(state);
        self.queue.report();
    }
}
