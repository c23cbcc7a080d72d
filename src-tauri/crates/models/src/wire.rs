//! Types of the models page.

use download::DownloadState;
use serde::Serialize;

use crate::places::ModelPlace;

/// Everything on the models page.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ModelList {
    /// The models: official files, known ones to download, other files by their last use and size, the bundled model, and
    /// files that do not run.
    pub entries: Vec<ModelEntry>,
    /// True while folders are being searched.
    pub scanning: bool,
    /// Folder for downloads.
    pub folder: String,
    /// Free bytes there.
    #[cfg_attr(feature = "specta", specta(type = Option<u32>))]
    pub free_bytes: Option<u64>,
}

/// A model on the models page: known, found on this computer, opened before, or being downloaded.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct ModelEntry {
    /// Id of the entry: the path of a file on this computer, else the manifest's file name, else the address.
    pub id: String,
    /// The model's name, such as `SmolLM3-3B`.
    pub name: String,
    /// Number of weights, if known.
    #[cfg_attr(feature = "specta", specta(type = Option<u32>))]
    pub parameters: Option<u64>,
    /// Quantisation mix, such as `Q4_K_M`; empty if not known yet.
    pub quantisation: String,
    /// Size of the file; 0 if not known yet.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub bytes: u64,
    /// SPDX expression of its licence.
    pub licence: Option<String>,
    /// Address of its page.
    pub source: Option<String>,
    /// Address of its download.
    pub address: Option<String>,
    /// Path, if the file is on this computer.
    pub file: Option<String>,
    /// Place of that path.
    pub place: Option<ModelPlace>,
    /// Comparison with the manifest.
    pub authenticity: Authenticity,
    /// Bytes verified so far, while its SHA-256 is being computed or is pending.
    #[cfg_attr(feature = "specta", specta(type = Option<u32>))]
    pub verified_bytes: Option<u64>,
    /// False for a model whose architecture does not run here.
    pub runs: bool,
    /// Reason why it cannot be opened, in sentences.
    pub problem: Option<String>,
    /// Additional note, in a sentence.
    pub note: Option<String>,
    /// Expected memory and speed.
    pub forecast: Option<Forecast>,
    /// Progress of its download.
    pub download: Option<DownloadState>,
    /// True for the model that newcomers are offered.
    pub recommended: bool,
}

/// Comparison of a file with the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum Authenticity {
    /// No entry has its size, or the one with this size has another SHA-256.
    Unlisted,
    /// An entry has its size; its SHA-256 is not computed yet.
    Unchecked,
    /// An entry has its size and its SHA-256.
    Official,
}

/// Expected memory and speed of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "camelCase")]
pub struct Forecast {
    /// Tokens of context that it would be opened with.
    pub context_length: u32,
    /// Memory of weights, KV cache and scratch at that context.
    #[cfg_attr(feature = "specta", specta(type = u32))]
    pub memory_bytes: u64,
    /// Fit to this computer.
    pub fit: Fit,
    /// Decoding rate in tokens per second.
    pub tokens_per_second: Option<f64>,
    /// True if the rate was measured with this very file under the present settings; false if it is estimated.
    pub measured: bool,
}

/// Fit of a model to this computer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "kebab-case")]
pub enum Fit {
    /// It fits in the free memory.
    Fits,
    /// It fits, but is slower than people read.
    Slow,
    /// It does not fit.
    DoesNotFit,
}
