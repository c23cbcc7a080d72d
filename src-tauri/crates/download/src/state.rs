//! State of a download, which follows from the events of its child.

use serde::Serialize;

use crate::event::DownloadEvent;

/// Progress of a download.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(
    tag = "state",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum DownloadState {
    /// Bytes are arriving.
    Running {
        /// Bytes that are here.
        #[cfg_attr(feature = "specta", specta(type = u32))]
        done: u64,
        /// Bytes of the file.
        #[cfg_attr(feature = "specta", specta(type = Option<u32>))]
        total: Option<u64>,
        /// Their rate.
        bytes_per_second: Option<f64>,
        /// Seconds that are left at this rate.
        #[cfg_attr(feature = "specta", specta(type = Option<u32>))]
        seconds_left: Option<u64>,
    },
    /// The connection is lost, and is being retried.
    Waiting {
        /// Bytes that are here.
        #[cfg_attr(feature = "specta", specta(type = u32))]
        done: u64,
        /// Bytes of the file.
        #[cfg_attr(feature = "specta", specta(type = Option<u32>))]
        total: Option<u64>,
        /// Reason, in a sentence.
        message: String,
        /// Seconds from the failure to the next try.
        #[cfg_attr(feature = "specta", specta(type = u32))]
        seconds: u64,
    },
    /// All bytes are here, and their SHA-256 is being computed.
    Verifying {
        /// Bytes hashed.
        #[cfg_attr(feature = "specta", specta(type = u32))]
        done: u64,
        /// Bytes of the file.
        #[cfg_attr(feature = "specta", specta(type = u32))]
        total: u64,
    },
    /// It was paused, or the app was closed meanwhile.
    Paused {
        /// Bytes that are here.
        #[cfg_attr(feature = "specta", specta(type = u32))]
        done: u64,
        /// Bytes of the file.
        #[cfg_attr(feature = "specta", specta(type = Option<u32>))]
        total: Option<u64>,
    },
    /// It failed; it can be resumed or dropped.
    Failed {
        /// Bytes that are here.
        #[cfg_attr(feature = "specta", specta(type = u32))]
        done: u64,
        /// Bytes of the file.
        #[cfg_attr(feature = "specta", specta(type = Option<u32>))]
        total: Option<u64>,
        /// Reason, in a sentence.
        message: String,
    },
}

impl DownloadState {
    /// Returns the received bytes, and the bytes of the file.
    pub fn progress(&self) -> (u64, Option<u64>) {
        match self {
            Self::Running { done, total, .. }
            | Self::Waiting { done, total, .. }
            | Self::Paused { done, total }
            | Self::Failed { done, total, .. } => (*done, *total),
            Self::Verifying { total, .. } => (*total, Some(*total)),
        }
    }

    /// Returns the state once a child has started, before its first event.
    pub fn started(&self) -> Self {
        let (done, total) = self.progress();
        Self::running(done, total, None)
    }

    /// Returns the state after a failure of the app's own.
    pub fn failed(&self, message: String) -> Self {
        let (done, total) = self.progress();
        Self::Failed {
            done,
            total,
            message,
        }
    }

    /// Returns the state after an event. A complete request and a complete file change none.
    pub fn after(&self, event: DownloadEvent) -> Self {
        let (done, total) = self.progress();
        match event {
            DownloadEvent::Resolved { .. } | DownloadEvent::Done { .. } => self.clone(),
            DownloadEvent::Progress {
                done,
                total,
                bytes_per_second,
            } => Self::running(done, total, bytes_per_second),
            DownloadEvent::Waiting { message, seconds } => Self::Waiting {
                done,
                total,
                message,
                seconds,
            },
            DownloadEvent::Verifying { done, total } => Self::Verifying { done, total },
            DownloadEvent::Paused { done } => Self::Paused { done, total },
            DownloadEvent::Failed {
                message,
                can_resume,
            } => Self::Failed {
                done: if can_resume { done } else { 0 },
                total,
                message,
            },
        }
    }

    fn running(done: u64, total: Option<u64>, bytes_per_second: Option<f64>) -> Self {
        Self::Running {
            done,
            total,
            bytes_per_second,
            seconds_left: seconds_left(done, total, bytes_per_second),
        }
    }
}

fn seconds_left(done: u64, total: Option<u64>, rate: Option<f64>) -> Option<u64> {
    let (left, rate) = (total?.checked_sub(done)?, rate?);
    let seconds = (left as f64 / rate).ceil();
    // Without incoming bytes no end is in sight.
    let is_foreseeable = rate > 0.0 && seconds < 1e7;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number of seconds, cut to what fits"
    )]
    is_foreseeable.then_some(seconds as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_of_the_bytes_that_are_left() {
        assert_eq!(seconds_left(400, Some(1000), Some(100.0)), Some(6));
        assert_eq!(seconds_left(1000, Some(1000), Some(100.0)), Some(0));
        for (done, total, rate) in [
            (0, None, Some(1.0)),
            (0, Some(10), None),
            (0, Some(10), Some(0.0)),
            (0, Some(u64::MAX), Some(1.0)),
            (0, Some(10), Some(f64::NAN)),
            (11, Some(10), Some(1.0)),
        ] {
            assert_eq!(seconds_left(done, total, rate), None);
        }
    }

    #[test]
    fn a_state_follows_from_the_one_before_and_an_event() {
        let (done, total) = (400, Some(1000));
        let paused = DownloadState::Paused { done, total };
        assert_eq!(
            paused.started(),
            DownloadState::Running {
                done,
                total,
                bytes_per_second: None,
                seconds_left: None,
            }
        );
        let message = || "gone".to_owned();
        let waiting = DownloadEvent::Waiting {
            message: message(),
            seconds: 8,
        };
        let waiting = paused.started().after(waiting);
        assert_eq!(waiting.progress(), (done, total));
        let verifying = DownloadEvent::Verifying {
            done: 10,
            total: 1000,
        };
        assert_eq!(waiting.after(verifying).progress(), (1000, total));
        let failed = |can_resume| {
            waiting.after(DownloadEvent::Failed {
                message: message(),
                can_resume,
            })
        };
        assert_eq!(failed(true), waiting.failed(message()));
        assert_eq!(failed(false).progress(), (0, total));
        let paused = waiting.after(DownloadEvent::Paused { done: 700 });
        assert_eq!(paused, DownloadState::Paused { done: 700, total });
    }
}
