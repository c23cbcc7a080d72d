//! The pipes to the app.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{process, thread};

use api::{ApiConfig, FromServer, Generation, ToServer};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Time for clients to read the ends of their answers before the process ends.
const LINGER: Duration = Duration::from_millis(300);

/// The pipes to the app. Clones share them.
#[derive(Clone)]
pub struct AppLink(Arc<AppLinkParts>);

struct AppLinkParts {
    lines: Sender<Vec<u8>>,
    /// Receivers of the lines with each id.
    waiting: Mutex<HashMap<u64, UnboundedSender<ToServer>>>,
    next: AtomicU64,
}

impl AppLink {
    /// Starts the threads that read and write. The end of the input ends this process. `on_config` is called with the
    /// configurations that come later.
    pub fn new(
        mut input: impl BufRead + Send + 'static,
        on_config: impl Fn(ApiConfig) + Send + 'static,
    ) -> AppLink {
        let (lines, to_write) = channel::<Vec<u8>>();
        thread::spawn(move || {
            let mut out = io::stdout();
            for line in to_write {
                // The end of the input ends this process.
                if out.write_all(&line).and_then(|()| out.flush()).is_err() {
                    return;
                }
            }
        });
        let link = AppLink(Arc::new(AppLinkParts {
            lines,
            waiting: Mutex::default(),
            next: AtomicU64::new(1),
        }));
        let reader = link.clone();
        thread::spawn(move || {
            let mut line = Vec::new();
            let mut last = None;
            while input
                .read_until(b'\n', &mut line)
                .is_ok_and(|read| read > 0)
            {
                match serde_json::from_slice(&line) {
                    Ok(ToServer::Configure(config)) => on_config(config),
                    Ok(line) => {
                        last = Some(Instant::now());
                        reader.receive(line);
                    }
                    // The app writes no such line.
                    Err(_) => {}
                }
                line.clear();
            }
            if last.is_some_and(|last| last.elapsed() < LINGER) {
                thread::sleep(LINGER);
            }
            process::exit(0);
        });
        link
    }

    /// Sends a line.
    pub fn send(&self, line: &FromServer) {
        let Ok(mut line) = serde_json::to_vec(line) else {
            return;
        };
        line.push(b'\n');
        // An error means that this process ends.
        let _ = self.0.lines.send(line);
    }

    /// Asks for an answer.
    pub fn generate(&self, request: Generation) -> Exchange {
        let request = Box::new(request);
        self.exchange(|id| FromServer::Generate { id, request })
    }

    /// Asks for something, and returns the reply; `None` if there is none.
    pub async fn ask(&self, line: impl FnOnce(u64) -> FromServer) -> Option<ToServer> {
        self.exchange(line).next().await
    }

    fn exchange(&self, line: impl FnOnce(u64) -> FromServer) -> Exchange {
        let id = self.0.next.fetch_add(1, Ordering::Relaxed);
        let (sender, replies) = unbounded_channel();
        self.waiting().insert(id, sender);
        self.send(&line(id));
        Exchange {
            link: self.clone(),
            id,
            replies,
        }
    }

    fn receive(&self, line: ToServer) {
        let (id, is_last) = (line.id(), line.is_last());
        let mut waiting = self.waiting();
        if let Some(sender) = waiting.get(&id) {
            // An error means that nobody waits any more.
            let _ = sender.send(line);
        }
        if is_last {
            waiting.remove(&id);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, UnboundedSender<ToServer>>> {
        self.0
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request to the app, and the replies. Dropping it before its end cancels it.
pub struct Exchange {
    link: AppLink,
    id: u64,
    replies: UnboundedReceiver<ToServer>,
}

impl Exchange {
    /// Returns the next reply; `None` after the last one.
    pub async fn next(&mut self) -> Option<ToServer> {
        self.replies.recv().await
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if self.link.waiting().remove(&self.id).is_some() {
            self.link.send(&FromServer::Cancel { id: self.id });
        }
    }
}
