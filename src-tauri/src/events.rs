//! Events from the host to the page: one channel, that of the latest subscriber.

use std::sync::{Arc, Mutex, PoisonError};

use tauri::ipc::Channel;

use app::wire::HostEvent;

/// Sends events to the latest subscriber. Before there is one they are dropped, as the page reads a snapshot after it
/// subscribed.
#[derive(Clone, Default)]
pub struct Events(Arc<Mutex<Option<Channel<HostEvent>>>>);

impl Events {
    /// Sends all later events to `channel` only.
    pub fn send_to(&self, channel: Channel<HostEvent>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(channel);
    }

    /// Sends one event. It does not wait for the page.
    pub fn send(&self, event: impl Into<HostEvent>) {
        let channel = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Err(error)) = channel.as_ref().map(|channel| channel.send(event.into())) {
            tracing::warn!("could not send an event to the page: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use app::wire::ShellEvent;

    use super::*;

    #[test]
    fn the_latest_subscriber_replaces_the_older() {
        let events = Events::default();
        events.send(ShellEvent::Dragging { over: true });

        let (to_old, old) = mpsc::channel();
        let (to_new, new) = mpsc::channel();
        events.send_to(Channel::new(move |_| {
            let _ = to_old.send(());
            Ok(())
        }));
        events.send(ShellEvent::Dragging { over: true });
        events.send_to(Channel::new(move |_| {
            let _ = to_new.send(());
            Ok(())
        }));
        events.send(ShellEvent::Dragging { over: false });
        events.send(ShellEvent::Dragging { over: true });

        assert_eq!((old.try_iter().count(), new.try_iter().count()), (1, 2));
    }
}
