//! Entries of the page for known, found and downloading models.

use engine::{FileLabel, LoadOptions, ModelHeader};

use super::*;
use crate::facts::WritingRate;
use crate::search::Unusable;
use crate::stamp::FileStamp;
use crate::wire::Fit;

const Q4_K_M: &str = "SmolLM3-Q4_K_M.gguf";

struct Sources {
    manifest: Manifest,
    found: Vec<FoundFile>,
    facts: Facts,
    downloads: BTreeMap<String, ListedDownload>,
    open: Option<OpenFile>,
    hashing: HashMap<FileStamp, u64>,
    available: Option<u64>,
    _folder: tempfile::TempDir,
}

impl Sources {
    fn new() -> Sources {
        let folder = tempfile::tempdir().expect("made");
        Sources {
            manifest: Manifest::embedded(),
            found: Vec::new(),
            facts: Facts::read(&folder.path().join("models.json")),
            downloads: BTreeMap::new(),
            open: None,
            hashing: HashMap::new(),
            available: None,
            _folder: folder,
        }
    }

    fn entries(&self) -> Vec<ModelEntry> {
        let machine = Machine {
            options: LoadOptions::default(),
            available: self.available,
            bandwidth: Some(40e9),
            reached: None,
        };
        let sources = EntrySources {
            manifest: &self.manifest,
            found: &self.found,
            facts: &self.facts,
            machine: &machine,
            machine_name: "auto, 2 threads",
            open: self.open.as_ref(),
            hashing: &self.hashing,
            downloads: &self.downloads,
            endpoint: "https://huggingface.co",
        };
        sources.entries()
    }

    fn add(&mut self, path: &str, bytes: u64, place: ModelPlace) -> FileStamp {
        let fixture = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../engine/tests/fixtures/tiny-q4_k_m.gguf"
        );
        let stamp = FileStamp {
            path: path.into(),
            more: Vec::new(),
            bytes,
            modified: 1,
            inodes: vec![1],
        };
        self.found.push(FoundFile {
            path: path.into(),
            place,
            drive: 1,
            stamp: stamp.clone(),
            header: ModelHeader::open(Path::new(fixture)).map_err(|error| error.to_string().into()),
        });
        stamp
    }

    fn known(&self) -> KnownModel {
        self.manifest.by_file(Q4_K_M).expect("known").clone()
    }
}

#[test]
fn without_files_the_known_models_are_offered_the_recommended_one_first() {
    let entries = Sources::new().entries();
    let first = &entries[0];
    assert_eq!((first.id.as_str(), first.recommended), (Q4_K_M, true));
    assert!(
        first
            .address
            .as_ref()
            .is_some_and(|it| it.ends_with(Q4_K_M))
    );
    let forecast = first.forecast.as_ref().expect("its shape is known");
    assert!(forecast.tokens_per_second.is_some_and(|rate| rate > 5.0));
    assert_eq!((forecast.fit, forecast.measured), (Fit::Fits, false));
    assert!(entries[1..].iter().all(|entry| !entry.recommended));
    let bundled = |entry: &ModelEntry| entry.name == "SmolLM2-135M-Instruct";
    assert!(!entries.iter().any(bundled), "it is not downloaded");
}

#[test]
fn a_file_is_official_only_by_size_and_hash() {
    let mut sources = Sources::new();
    let known = sources.known();
    let stamp = sources.add("/cache/mine.gguf", known.bytes, ModelPlace::HuggingFace);
    let entry = |sources: &Sources| {
        let entries = sources.entries();
        let found = entries.iter().find(|it| it.file.is_some()).expect("found");
        (found.clone(), entries.iter().any(|it| it.id == Q4_K_M))
    };
    let (unchecked, is_offered) = entry(&sources);
    assert_eq!(unchecked.authenticity, Authenticity::Unchecked);
    assert_eq!(
        (unchecked.name.as_str(), is_offered),
        ("SmolLM3-3B", true),
        "it can be downloaded for as long as that takes"
    );
    assert_eq!(unchecked.verified_bytes, None);
    sources.hashing.insert(stamp.clone(), 7);
    assert_eq!(entry(&sources).0.verified_bytes, Some(7));
    sources.hashing.clear();

    sources
        .facts
        .update(&stamp, |facts| facts.sha256 = Some(known.sha256.clone()));
    let (official, is_offered) = entry(&sources);
    assert_eq!(official.authenticity, Authenticity::Official);
    assert_eq!((official.recommended, is_offered), (true, false));
    assert_eq!(official.licence.as_deref(), Some("Apache-2.0"));

    // The manifest has a wrong hash, or the file is damaged.
    sources
        .facts
        .update(&stamp, |facts| facts.sha256 = Some("0".repeat(64)));
    let (other, is_offered) = entry(&sources);
    assert_eq!(other.authenticity, Authenticity::Unlisted);
    assert!(is_offered && !other.recommended && other.licence.is_none());
    assert_eq!(
        other.source, None,
        "its path in the cache names no repository"
    );
    let note = other.note.expect("a sentence");
    assert!(note.contains(Q4_K_M) && note.contains("SHA-256"), "{note}");
    assert_eq!(other.problem, None, "it opens all the same");

    sources.found[0].stamp.bytes += 1;
    let (unlisted, _) = entry(&sources);
    assert_eq!(
        (unlisted.authenticity, unlisted.note),
        (Authenticity::Unlisted, None)
    );
}

#[test]
fn a_file_that_cannot_be_read_leaves_the_model_to_be_downloaded() {
    let mut sources = Sources::new();
    let bytes = sources.known().bytes;
    sources.add("/SmolLM3-Q4_K_M.gguf", bytes, ModelPlace::Downloads);
    sources.found[0].header = Err("It could not be read.".to_owned().into());
    let entries = sources.entries();
    assert_eq!(entries[0].id, Q4_K_M);
    assert!(entries.iter().any(|it| it.id == "/SmolLM3-Q4_K_M.gguf"));
}

/// Makes a slow rate that was measured on a machine.
fn rate(machine: &str) -> Option<WritingRate> {
    Some(WritingRate {
        machine: machine.to_owned(),
        tokens_per_second: 3.0,
    })
}

#[test]
fn a_measured_rate_goes_before_the_estimate() {
    let mut sources = Sources::new();
    let stamp = sources.add("/a.gguf", 7, ModelPlace::Downloads);
    let forecast = |sources: &Sources| {
        let entries = sources.entries();
        let entry = entries.iter().find(|it| it.file.is_some()).expect("found");
        entry.forecast.clone().expect("its header is sound")
    };
    assert!(!forecast(&sources).measured);
    sources
        .facts
        .update(&stamp, |facts| facts.rate = rate("auto, 2 threads"));
    let measured = forecast(&sources);
    assert_eq!(
        (measured.tokens_per_second, measured.measured),
        (Some(3.0), true)
    );
    assert_eq!(measured.fit, Fit::Slow);
    // Under other settings it would have another one.
    sources
        .facts
        .update(&stamp, |facts| facts.rate = rate("gpu, 2 threads"));
    assert!(!forecast(&sources).measured);
}

#[test]
fn the_open_file_has_its_context_and_another_the_one_that_it_would_have() {
    let mut sources = Sources::new();
    for path in ["/a.gguf", "/b.gguf"] {
        sources.add(path, 7, ModelPlace::Downloads);
    }
    sources.open = Some(OpenFile {
        path: "/b.gguf".into(),
        context_length: 1234,
    });
    let entries = sources.entries();
    let length = |id: &str| {
        let entry = entries.iter().find(|entry| entry.id == id).expect("found");
        entry.forecast.as_ref().expect("sound").context_length
    };
    assert_eq!((length("/a.gguf"), length("/b.gguf")), (4096, 1234));
}

#[test]
fn other_files_have_the_licence_and_the_page_that_are_known_of_them() {
    let mut sources = Sources::new();
    sources.add("/a.gguf", 7, ModelPlace::Downloads);
    let header = sources.found[0].header.as_mut().expect("sound");
    header.licence = Some("mit".into());
    header.source = Some("https://example.org/a".into());
    let cached = "/hub/models--me--it--v2/snapshots/1/b.gguf";
    sources.add(cached, 8, ModelPlace::HuggingFace);
    let entries = sources.entries();
    let of = |id: &str| {
        let entry = entries.iter().find(|entry| entry.id == id).expect("found");
        (entry.licence.as_deref(), entry.source.as_deref())
    };
    assert_eq!(of("/a.gguf"), (Some("mit"), Some("https://example.org/a")));
    let page = "https://huggingface.co/me/it--v2";
    assert_eq!(of(cached), (None, Some(page)));
}

#[test]
fn downloads_are_shown_with_their_models_and_typed_addresses_on_their_own() {
    let mut sources = Sources::new();
    let state = DownloadState::Paused {
        done: 5,
        total: Some(10),
    };
    let url = "https://huggingface.co/me/it/resolve/main/Mine-Q8_0.gguf";
    for (id, file) in [(Q4_K_M, Q4_K_M), (url, "Mine-Q8_0.gguf")] {
        let download = ListedDownload {
            file: file.to_owned(),
            url: url.to_owned(),
            state: state.clone(),
        };
        sources.downloads.insert(id.to_owned(), download);
    }
    let bytes = sources.known().bytes;
    sources.add("/copy.gguf", bytes, ModelPlace::Downloads);
    let entries = sources.entries();
    assert_eq!(entries[0].download.as_ref(), Some(&state));
    assert!(
        entries.iter().any(|it| it.id == "/copy.gguf"),
        "a copy beside it"
    );
    let typed = entries.iter().find(|it| it.id == url).expect("listed");
    assert_eq!((typed.name.as_str(), typed.bytes), ("Mine-Q8_0", 10));
    assert_eq!(typed.address.as_deref(), Some(url));
    assert_eq!(
        typed.source.as_deref(),
        Some("https://huggingface.co/me/it")
    );
}

#[test]
fn a_file_that_cannot_be_opened_has_its_problem_and_no_forecast_and_the_bundled_model_is_last() {
    let mut sources = Sources::new();
    sources.add("/bundled.gguf", 1, ModelPlace::BundledModel);
    sources.add("/SmolLM3-cut.gguf", 7, ModelPlace::Downloads);
    sources.found[1].header = Err("It cannot be opened: it is cut off.".to_owned().into());
    let entries = sources.entries();
    let [.., cut, bundled] = &entries[..] else {
        panic!("{entries:?}");
    };
    assert_eq!(cut.name, "SmolLM3-cut");
    assert!(cut.problem.is_some() && cut.forecast.is_none());
    assert_eq!(bundled.place, Some(ModelPlace::BundledModel));
}

#[test]
fn the_official_file_is_first_then_what_was_opened_last_then_the_largest() {
    let mut sources = Sources::new();
    let known = sources.known();
    let paths = [
        "/old.gguf",
        "/small.gguf",
        "/large.gguf",
        "/new.gguf",
        "/foreign.gguf",
    ];
    let stamps: Vec<_> = (1u64..)
        .zip(paths)
        .map(|(bytes, path)| sources.add(path, bytes, ModelPlace::Downloads))
        .collect();
    for at in [0, 3] {
        sources.facts.open(&stamps[at], Path::new(paths[at]));
    }
    sources.found[4].header = Err(Unusable {
        reason: "This is a Gemma 3 model.".to_owned(),
        foreign: Some(FileLabel {
            name: "Gemma".to_owned(),
            quantisation: "Q8_0".to_owned(),
        }),
    });
    let official = sources.add("/official.gguf", known.bytes, ModelPlace::Jan);
    sources
        .facts
        .update(&official, |facts| facts.sha256 = Some(known.sha256));
    sources.add("/bundled.gguf", 900, ModelPlace::BundledModel);
    let entries = sources.entries();
    let files: Vec<_> = entries.iter().filter_map(|it| it.file.as_deref()).collect();
    assert_eq!(
        files,
        [
            "/official.gguf",
            "/new.gguf",
            "/old.gguf",
            "/large.gguf",
            "/small.gguf",
            "/bundled.gguf",
            "/foreign.gguf",
        ]
    );
    let foreign = entries.last().expect("listed");
    assert_eq!((foreign.name.as_str(), foreign.runs), ("Gemma", false));
    assert_eq!(foreign.quantisation, "Q8_0");
    let parameters = entries[0].parameters.expect("its header is read");
    assert!((1_000..10_000_000).contains(&parameters), "{parameters}");
}

#[test]
fn a_small_computer_is_offered_the_largest_model_that_fits() {
    let mut sources = Sources::new();
    let mut offered = |available: u64| {
        sources.available = Some(available);
        let entries = sources.entries();
        let mut names = entries.iter().filter(|it| it.recommended);
        let offered = names.next().expect("one is").name.clone();
        assert!(names.next().is_none(), "one alone");
        offered
    };
    assert_eq!(offered(8_000_000_000), "SmolLM3-3B");
    assert_eq!(offered(1_900_000_000), "SmolLM2-1.7B-Instruct");
    assert_eq!(offered(700_000_000), "SmolLM2-360M-Instruct");
    assert_eq!(offered(10_000_000), "SmolLM2-360M-Instruct", "the smallest");
}
