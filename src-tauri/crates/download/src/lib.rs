//! Downloads of model files: the protocol with `goldcrest-fetch`, and the paths of the files.
//!
//! Nothing here opens a network socket. A download is a child process ([`Download`]), which takes a [`DownloadRequest`]
//! as a line of JSON on its stdin and writes a [`DownloadEvent`] per line to stdout. Its [`DownloadState`] follows from these.

#![warn(missing_docs)]

mod address;
mod child;
mod disk;
mod event;
mod hub;
mod lock;
mod paths;
mod request;
mod state;

pub use address::{AddressError, Places, is_loopback, parse_address};
pub use child::{Download, program};
pub use disk::free_bytes;
pub use event::DownloadEvent;
pub use hub::{HUB, hub_endpoint, hub_folder, hub_token_file};
pub use lock::{FileLock, LockError};
pub use paths::{DownloadPaths, drop_incomplete, incomplete_bytes};
pub use request::{Destination, DownloadRequest, PAUSE, RequestError, is_commit, is_sha256};
pub use state::DownloadState;
