//! The entries of the models page, assembled from all sources.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use download::DownloadState;
use engine::{FileLabel, Footprint, ModelHeader};

use crate::facts::{Facts, FileFacts};
use crate::forecast::Machine;
use crate::manifest::{KnownModel, Manifest};
use crate::places::ModelPlace;
use crate::search::FoundFile;
use crate::stamp::FileStamp;
use crate::wire::{Authenticity, Fit, Forecast, ModelEntry};

/// A download under way or interrupted.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedDownload {
    /// The name of its file.
    pub file: String,
    /// The address.
    pub url: String,
    /// Progress of the download.
    pub state: DownloadState,
}

/// The model file that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenFile {
    /// Its path, as it was opened.
    pub path: PathBuf,
    /// Length of its context, in tokens.
    pub context_length: usize,
}

/// Sources of the entries.
pub struct EntrySources<'a> {
    /// The known models.
    pub manifest: &'a Manifest,
    /// The files on this computer.
    pub found: &'a [FoundFile],
    /// Cached facts about them.
    pub facts: &'a Facts,
    /// This computer and the settings.
    pub machine: &'a Machine,
    /// Key of the rates: the device, the CPU and the requested threads.
    pub machine_name: &'a str,
    /// The file that is open, if one is.
    pub open: Option<&'a OpenFile>,
    /// Files whose SHA-256 is being computed or is pending, with the bytes read so far.
    pub hashing: &'a HashMap<FileStamp, u64>,
    /// Downloads by the ids of their entries.
    pub downloads: &'a BTreeMap<String, ListedDownload>,
    /// The address of the hub, or of a mirror.
    pub endpoint: &'a str,
}

/// Returns the id of the entry of a file on this computer.
pub fn id_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

impl EntrySources<'_> {
    /// Returns the official files of the recommended model, the known models that can be downloaded, the other files, typed
    /// addresses, the bundled model, and the files of other architectures. Files are in the order of their last opening, then
    /// of their sizes.
    pub fn entries(&self) -> Vec<ModelEntry> {
        let mut files: Vec<_> = (self.found.iter())
            .map(|file| (file, self.identity(file)))
            .collect();
        files.sort_by_key(|(file, _)| {
            let opened = self.facts.of(&file.stamp).map(FileFacts::last_opened);
            Reverse((opened.unwrap_or(0), file.stamp.bytes))
        });
        let first = self.manifest.recommended().map(|known| &known.name);
        let rank = |(file, it): &(&FoundFile, Identity<'_>)| match it.known {
            _ if file.is_foreign() => Rank::Foreign,
            _ if file.place == ModelPlace::BundledModel => Rank::Bundled,
            Some(known)
                if Some(&known.name) == first && it.authenticity == Authenticity::Official =>
            {
                Rank::First
            }
            _ => Rank::Other,
        };
        let found = |wanted: Rank| {
            let files = files.iter().filter(move |file| rank(file) == wanted);
            files.map(|(file, it)| self.found_entry(file, it))
        };
        let known = self.manifest.downloadable().filter(|known| {
            let is_here = files.iter().any(|(file, it)| {
                // Until it is verified it may turn out to be damaged, and its drive may not answer.
                it.known == Some(known)
                    && file.header.is_ok()
                    && it.authenticity == Authenticity::Official
            });
            // A download continues, or stays paused, though a copy has turned up elsewhere.
            !is_here || self.downloads.contains_key(&known.file)
        });
        (found(Rank::First))
            .chain(known.map(|known| self.known_entry(known)))
            .chain(found(Rank::Other))
            .chain(self.typed_entries())
            .chain(found(Rank::Bundled))
            .chain(found(Rank::Foreign))
            .collect()
    }

    /// Returns the model that newcomers are offered: the first of the manifest that fits in the free memory, else the
    /// smallest.
    fn recommended(&self) -> Option<&KnownModel> {
        let fits = |known: &&KnownModel| {
            let forecast = self.forecast_of(known);
            forecast.is_none_or(|forecast| forecast.fit != Fit::DoesNotFit)
        };
        let smallest = || self.manifest.downloadable().min_by_key(|it| it.bytes);
        self.manifest.downloadable().find(fits).or_else(smallest)
    }

    /// Returns the forecast of a known model, for which its file need not be there.
    fn forecast_of(&self, known: &KnownModel) -> Option<Forecast> {
        let footprint = Footprint::of_published(&known.name, known.bytes)?;
        Some(self.machine.forecast(&footprint, None))
    }

    /// Identifies the known model of a file.
    fn identity(&self, file: &FoundFile) -> Identity<'_> {
        let mut same_size = (self.manifest.models.iter())
            .filter(|known| known.bytes == file.stamp.bytes)
            .peekable();
        let Some(&first) = same_size.peek() else {
            return Identity::unlisted(None);
        };
        match self.facts.of(&file.stamp).and_then(|it| it.sha256.as_ref()) {
            None => Identity {
                known: Some(first),
                authenticity: Authenticity::Unchecked,
                note: None,
            },
            Some(sha256) => match same_size.find(|known| known.sha256 == *sha256) {
                Some(known) => Identity {
                    known: Some(known),
                    authenticity: Authenticity::Official,
                    note: None,
                },
                None => Identity::unlisted(Some(format!(
                    "It has the size of {}, but other content (another SHA-256): it is changed or damaged.",
                    first.file
                ))),
            },
        }
    }

    fn found_entry(&self, file: &FoundFile, identity: &Identity<'_>) -> ModelEntry {
        let known = identity.known;
        let measured = self.facts.of(&file.stamp);
        let measured = measured.and_then(|facts| facts.measured(self.machine_name));
        let header = file.header.as_ref();
        let forecast = |header: &ModelHeader| {
            let footprint = &header.footprint;
            match self.open.filter(|open| open.path == file.path) {
                Some(OpenFile { context_length, .. }) => {
                    (self.machine).forecast_open(footprint, *context_length, measured)
                }
                None => self.machine.forecast(footprint, measured),
            }
        };
        let own_licence = || header.ok().and_then(|header| header.licence.clone());
        let own_source = || header.ok().and_then(|header| header.source.clone());
        let foreign = (file.header.as_ref().err()).and_then(|refusal| refusal.foreign.as_ref());
        let label = |of_header: fn(&ModelHeader) -> &String,
                     of_label: fn(&FileLabel) -> &String| {
            (header.ok().map(of_header))
                .or(foreign.map(of_label))
                .cloned()
        };
        let named = || label(|it| &it.name, |it| &it.name).unwrap_or_else(|| file_stem(&file.path));
        ModelEntry {
            id: id_of(&file.path),
            name: known.map_or_else(named, |known| known.name.clone()),
            parameters: header.ok().map(|header| header.parameters),
            quantisation: label(|it| &it.quantisation, |it| &it.quantisation).unwrap_or_default(),
            bytes: file.stamp.bytes,
            licence: known.map_or_else(own_licence, |known| Some(known.licence.clone())),
            source: known
                .and_then(KnownModel::page)
                .or_else(|| page_of_cached(file))
                .or_else(own_source),
            address: known.and_then(|known| known.address(self.endpoint)),
            file: Some(id_of(&file.path)),
            place: Some(file.place),
            authenticity: identity.authenticity,
            verified_bytes: self.hashing.get(&file.stamp).copied(),
            runs: !file.is_foreign(),
            problem: header.err().map(|refusal| refusal.reason.clone()),
            note: identity.note.clone(),
            forecast: header.ok().map(forecast),
            download: None,
            recommended: known.is_some() && known == self.recommended(),
        }
    }

    fn known_entry(&self, known: &KnownModel) -> ModelEntry {
        let download = self.downloads.get(&known.file);
        ModelEntry {
            id: known.file.clone(),
            name: known.name.clone(),
            parameters: None,
            quantisation: known.quantisation.clone(),
            bytes: known.bytes,
            licence: Some(known.licence.clone()),
            source: known.page(),
            address: known.address(self.endpoint),
            file: None,
            place: None,
            authenticity: Authenticity::Official,
            verified_bytes: None,
            runs: true,
            problem: None,
            note: None,
            forecast: self.forecast_of(known),
            download: download.map(|download| download.state.clone()),
            recommended: self.recommended() == Some(known),
        }
    }

    /// Returns the downloads of typed addresses.
    fn typed_entries(&self) -> impl Iterator<Item = ModelEntry> {
        let is_typed = |id: &str| self.manifest.by_file(id).is_none();
        let typed = self.downloads.iter().filter(move |(id, _)| is_typed(id));
        typed.map(|(id, download)| ModelEntry {
            id: id.clone(),
            name: file_stem(Path::new(&download.file)),
            parameters: None,
            quantisation: String::new(),
            bytes: download.state.progress().1.unwrap_or(0),
            licence: None,
            source: page_of_address(&download.url),
            address: Some(download.url.clone()),
            file: None,
            place: None,
            authenticity: Authenticity::Unlisted,
            verified_bytes: None,
            runs: true,
            problem: None,
            note: None,
            forecast: None,
            download: Some(download.state.clone()),
            recommended: false,
        })
    }
}

/// Position of a file in the list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rank {
    /// An official file of the recommended model.
    First,
    /// Any other.
    Other,
    /// The bundled model.
    Bundled,
    /// A model of an architecture that does not run here.
    Foreign,
}

/// Known model of a file, and how certain that is.
struct Identity<'a> {
    known: Option<&'a KnownModel>,
    authenticity: Authenticity,
    note: Option<String>,
}

impl Identity<'_> {
    fn unlisted(note: Option<String>) -> Self {
        Identity {
            known: None,
            authenticity: Authenticity::Unlisted,
            note,
        }
    }
}

/// Returns the page of the repository of an address, on the hub or a mirror of it.
fn page_of_address(address: &str) -> Option<String> {
    let (page, _) = address.split_once("/resolve/")?;
    Some(page.to_owned())
}

/// Returns the page of the repository whose folder in the hub's cache contains a file: `models--OWNER--NAME`.
fn page_of_cached(file: &FoundFile) -> Option<String> {
    if file.place != ModelPlace::HuggingFace {
        return None;
    }
    let folder = file.path.ancestors().find_map(|folder| {
        let name = folder.file_name()?.to_str()?;
        name.strip_prefix("models--")
    });
    let (owner, name) = folder?.split_once("--")?;
    Some(format!("https://huggingface.co/{owner}/{name}"))
}

fn file_stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or(path.as_os_str());
    engine::gguf::quote(&stem.to_string_lossy())
}

#[cfg(test)]
mod tests;
