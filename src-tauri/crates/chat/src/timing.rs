//! Timing of background work.

use std::time::Duration;

/// Timing of background work. Tests use shorter times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Delay after the start before expired chats are purged and messages of earlier versions are indexed.
    pub purge_after: Duration,
    /// Delay after the start before the daily copy of the database, when the first screen is up.
    pub copy_after: Duration,
    /// Maximum delay before a token is journaled.
    pub journal_after: Duration,
    /// Interval before a failed save is retried.
    pub retry_after: Duration,
    /// Length of a minute of [`Settings::unload_minutes`].
    pub minute: Duration,
    /// Idle time before idle work begins.
    pub idle_after: Duration,
    /// Time limit for the model to stop at the end, and then for it to be dropped.
    pub close_within: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            purge_after: Duration::from_secs(5),
            copy_after: Duration::from_secs(20),
            journal_after: Duration::from_millis(250),
            retry_after: Duration::from_secs(5),
            minute: Duration::from_secs(60),
            idle_after: Duration::from_secs(2),
            close_within: Duration::from_secs(5),
        }
    }
}
