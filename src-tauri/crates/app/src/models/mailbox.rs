//! Requests to a thread that owns a state: each is a closure that the owner runs.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

type OwnerRequest<O> = Box<dyn FnOnce(&mut O) + Send>;

/// Sender of requests to the owner of an `O`. Clones lead to the same owner.
pub struct Mailbox<O>(Sender<OwnerRequest<O>>);

/// Receiver of the owner's requests.
pub struct Inbox<O>(Receiver<OwnerRequest<O>>);

/// The owner has ended.
#[derive(Debug)]
pub struct NoOwner;

impl<O> Clone for Mailbox<O> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<O: 'static> Mailbox<O> {
    /// Makes a mailbox, and its inbox, in which requests wait for the owner.
    pub fn new() -> (Self, Inbox<O>) {
        let (sender, receiver) = channel();
        (Self(sender), Inbox(receiver))
    }

    /// Sends a request.
    pub fn tell(&self, request: impl FnOnce(&mut O) + Send + 'static) {
        // Without an owner the app is ending.
        let _ = self.0.send(Box::new(request));
    }

    /// Sends a request and waits for its result.
    pub fn ask<T: Send + 'static>(
        &self,
        request: impl FnOnce(&mut O) -> T + Send + 'static,
    ) -> Result<T, NoOwner> {
        let (reply, answer) = channel();
        self.tell(move |owner| {
            let _ = reply.send(request(owner));
        });
        answer.recv().map_err(|_| NoOwner)
    }

    /// Runs slow work on a separate thread, and passes the result to the owner; an error if there is no thread for it,
    /// or it panicked, so that callers do not wait forever.
    pub fn in_background<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
        then: impl FnOnce(&mut O, io::Result<T>) + Send + 'static,
    ) {
        let named = thread::Builder::new().name("models-work".to_owned());
        self.on_thread(named, work, then);
    }

    fn on_thread<T: Send + 'static, F: FnOnce(&mut O, io::Result<T>) + Send + 'static>(
        &self,
        builder: thread::Builder,
        work: impl FnOnce() -> T + Send + 'static,
        then: F,
    ) {
        let mailbox = self.clone();
        // A value moved into a thread that does not start is lost: `then` follows.
        let (hand, handed) = channel::<F>();
        let started = builder.spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(work))
                .map_err(|_| io::Error::other("of a failure in Goldcrest"));
            if let Ok(then) = handed.recv() {
                mailbox.tell(move |owner| then(owner, result));
            }
        });
        match started {
            Ok(_) => {
                let _ = hand.send(then);
            }
            Err(error) => {
                tracing::error!(%error, "there is no thread for the list of models");
                self.tell(move |owner| then(owner, Err(error)));
            }
        }
    }
}

impl<O> Inbox<O> {
    /// Runs the requests of `owner` until the app ends.
    pub fn serve(self, mut owner: O) {
        while let Ok(request) = self.0.recv() {
            request(&mut owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn work_that_panics_comes_back_as_an_error() {
        let (mailbox, inbox) = Mailbox::<Option<String>>::new();
        let work = || -> u8 { panic!("as if by a bug") };
        mailbox.in_background(work, |owner, result| {
            *owner = result.err().map(|error| error.to_string());
        });
        thread::spawn(move || inbox.serve(None));
        let deadline = Instant::now() + Duration::from_secs(30);
        while mailbox.ask(|owner| owner.is_none()).expect("an owner") {
            assert!(Instant::now() < deadline, "nothing came back");
            thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn work_without_a_thread_comes_back_as_an_error() {
        let (mailbox, inbox) = Mailbox::<Vec<bool>>::new();
        mailbox.in_background(|| (), |owner, result| owner.push(result.is_ok()));
        // No address space holds a stack of this size.
        let vast = thread::Builder::new().stack_size(1 << 60);
        mailbox.on_thread(vast, || (), |owner, result| owner.push(result.is_ok()));
        let owner = thread::spawn(move || inbox.serve(Vec::new()));
        let mut seen = Vec::new();
        while seen.len() < 2 {
            seen = mailbox.ask(|owner| owner.clone()).expect("an owner");
        }
        seen.sort_unstable();
        assert_eq!(seen, [false, true]);
        drop(mailbox);
        owner.join().expect("it ends without a mailbox");
    }
}
