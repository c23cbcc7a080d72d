//! What the models page shows.

use serde::Serialize;

use crate::places::ModelPlace;

/// Everything on the models page.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ModelList {
    /// The models: known ones in the order of the manifest, then the other files, then the demo model.
    pub entries: Vec<ModelEntry>,
    /// Whether folders are being searched.
    pub scanning: bool,
    /// The folder into which models are downloaded.
    pub folder: String,
    /// Bytes that are free there.
    #[cfg_attr(feature = "specta", specta(type = Option<u32>))]
    pub free_bytes: Option<u64>,
}

/// A model on the models page: known, found on this computer, opened before, or being downloaded.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ModelEntry {
    /// Names the entry: the path of a file that is here, else the manifest's file name, else the address.
    pub id: String,
    /// The model's name, such as `SmolLM3-3B`.
    pub name: String,
    /// The quantisation mix, such as `Q4_K_M`; empty where it is not known yet.
    pub quantisation: String,
    /// Size of the file; 0 where it is not known yet.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub bytes: u64,
    /// SPDX expression of its licence.
    pub licence: Option<String>,
    /// Address of the page that it comes from.
    pub source: Option<String>,
    /// Address that it is downloaded from.
    pub address: Option<String>,
    /// Path, if the file is on this computer.
    pub file: Option<String>,
    /// Where that is.
    pub place: Option<ModelPlace>,
    /// Whether it is the file that the manifest describes.
    pub authenticity: Authenticity,
    /// Bytes that are verified so far, while its SHA-256 is computed or waits for that.
    #[cfg_attr(feature = "specta", specta(type = Option<u32>))]
    pub verified_bytes: Option<u64>,
    /// Why it cannot be opened, in a sentence.
    pub problem: Option<String>,
    /// What else there is to know of it, in a sentence.
    pub note: Option<String>,
    /// What running it would take.
    pub forecast: Option<Forecast>,
    /// How far its download is.
    pub download: Option<DownloadState>,
    /// Whether it is the model that newcomers are offered.
    pub recommended: bool,
}

/// Whether a file is one that the manifest describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum Authenticity {
    /// No entry has its size, or the one that has it another SHA-256.
    Unlisted,
    /// An entry has its size; its SHA-256 is not computed yet.
    Unchecked,
    /// An entry has its size and its SHA-256.
    Official,
}

/// What running a model takes, and how fast it writes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct Forecast {
    /// Tokens of context that it would be opened with.
    pub context_length: u32,
    /// Memory of weights, KV cache and scratch at that context.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub memory_bytes: u64,
    /// Whether that suits this computer.
    pub fit: Fit,
    /// Tokens that it writes per second.
    pub tokens_per_second: Option<f64>,
    /// Whether that was measured with this very file under the present settings, or is estimated.
    pub measured: bool,
}

/// Whether a model suits this computer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum Fit {
    /// It fits in the free memory.
    Fits,
    /// It does, and writes slower than people read.
    Slow,
    /// It does not.
    DoesNotFit,
}

/// How far a download is.
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
    /// The connection is lost, and is tried again.
    Waiting {
        /// Bytes that are here.
        #[cfg_attr(feature = "specta", specta(type = u32))]
        done: u64,
        /// Bytes of the file.
        #[cfg_attr(feature = "specta", specta(type = Option<u32>))]
        total: Option<u64>,
        /// Why, in a sentence.
        message: String,
        /// Seconds from the failure to the next try.
        #[cfg_attr(feature = "specta", specta(type = u32))]
        seconds: u64,
    },
    /// All bytes are here, and their SHA-256 is being computed.
    Verifying {
        /// Bytes that were read.
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
        /// Why, in a sentence.
        message: String,
    },
}
