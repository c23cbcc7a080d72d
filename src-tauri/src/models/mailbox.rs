//! Requests to a thread that owns a state: each is a closure that the owner runs.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

type OwnerRequest<O> = Box<dyn FnOnce(&mut O) + Send>;

/// Where requests to the owner of an `O` are left. Clones lead to the same owner.
pub struct Mailbox<O>(Sender<OwnerRequest<O>>);

/// What the owner takes requests from.
pub struct Inbox<O>(Receiver<OwnerRequest<O>>);

/// There is no owner any more.
#[derive(Debug)]
pub struct NoOwner;

impl<O> Clone for Mailbox<O> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<O: 'static> Mailbox<O> {
    /// A mailbox, and its inbox, in which requests wait until there is an owner.
    pub fn new() -> (Self, Inbox<O>) {
        let (sender, receiver) = channel();
        (Self(sender), Inbox(receiver))
    }

    /// Leaves a request.
    pub fn tell(&self, request: impl FnOnce(&mut O) + Send + 'static) {
        // Without an owner the app is ending.
        let _ = self.0.send(Box::new(request));
    }

    /// Leaves a request and waits for its result.
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

    /// Does something slow on a thread of its own, and gives the result to the owner.
    pub fn in_background<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
        then: impl FnOnce(&mut O, T) + Send + 'static,
    ) {
        let mailbox = self.clone();
        let named = thread::Builder::new().name("models-work".to_owned());
        let started = named.spawn(move || {
            let result = work();
            mailbox.tell(move |owner| then(owner, result));
        });
        if let Err(error) = started {
            tracing::error!(%error, "there is no thread for the list of models");
        }
    }
}

impl<O> Inbox<O> {
    /// Lets `owner` do what it is asked until the app ends.
    pub fn serve(self, mut owner: O) {
        while let Ok(request) = self.0.recv() {
            request(&mut owner);
        }
    }
}
