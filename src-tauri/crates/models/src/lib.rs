//! Known models, model files on this computer, and forecasts of memory and speed.
//!
//! Nothing here opens a socket: another program downloads models.

#![warn(missing_docs)]

mod entries;
mod facts;
mod forecast;
mod hash;
mod manifest;
mod ollama;
mod places;
mod search;
mod small_file;
mod stamp;
mod wire;

pub use entries::{EntrySources, ListedDownload, OpenFile, id_of};
pub use facts::{Bandwidth, Facts, FileFacts, WritingRate};
pub use forecast::Machine;
pub use hash::{lower_priority, sha256};
pub use manifest::{KnownModel, Manifest, ManifestError};
pub use places::{ModelPlace, SearchFolder, UserFolders, own_folders, search_folders};
pub use search::{FoundFile, ModelSearch, SearchLimits, Unusable, is_gguf, model_among, unread};
pub use stamp::FileStamp;
pub use wire::{Authenticity, Fit, Forecast, ModelEntry, ModelList};
