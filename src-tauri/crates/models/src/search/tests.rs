//! Folders as users have them: full, linked in circles, forbidden, and with damaged files.

use std::fs;

use tempfile::TempDir;

use super::*;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/tests/fixtures/tiny-q4_k_m.gguf")
}

/// Creates a SmolLM3 file at this path.
fn place(path: &Path) {
    fs::create_dir_all(path.parent().expect("has one")).expect("made");
    fs::copy(fixture(), path).expect("copied");
}

fn folder(path: &Path, depth: usize) -> SearchFolder {
    SearchFolder {
        place: ModelPlace::Downloads,
        path: path.to_owned(),
        depth,
    }
}

fn names(found: &[FoundFile]) -> Vec<String> {
    let name = |file: &FoundFile| {
        file.path
            .file_name()
            .map(|name| name.to_string_lossy().into())
    };
    found.iter().filter_map(name).collect()
}

fn found(home: &TempDir, depth: usize) -> Vec<FoundFile> {
    ModelSearch::default().run(&[folder(home.path(), depth)], &[])
}

#[test]
fn smollm3_files_are_found_and_others_are_not() {
    let home = tempfile::tempdir().expect("made");
    place(&home.path().join("a.gguf"));
    place(&home.path().join("owner/name/b.GGUF"));
    place(&home.path().join("owner/name/notes.txt"));
    place(&home.path().join(".hidden/c.gguf"));
    place(&home.path().join("1/2/3/deep.gguf"));
    fs::write(home.path().join("text.gguf"), "no model").expect("written");
    fs::create_dir(home.path().join("folder.gguf")).expect("made");
    let found = found(&home, 2);
    assert_eq!(names(&found), ["a.gguf", "b.GGUF"]);
    let header = found[0].header.as_ref().expect("sound");
    assert_eq!(header.quantisation, "Q4_K_M");
    assert!(header.footprint.bytes_per_token > 0);
}

#[test]
fn models_of_ollama_are_found_by_their_manifests() {
    let home = tempfile::tempdir().expect("made");
    let models = home.path().join("models");
    let hash = "0123456789abcdef".repeat(4);
    place(&models.join(format!("blobs/sha256-{hash}")));
    let manifests = models.join("manifests/registry.ollama.ai/library");
    let manifest = |name: &str, text: String| {
        let path = manifests.join(name);
        fs::create_dir_all(path.parent().expect("has one")).expect("made");
        fs::write(path, text).expect("written");
    };
    let layers = |digest: &str| {
        format!(
            r#"{{"schemaVersion":2,"layers":[{{"mediaType":"application/vnd.ollama.image.license","digest":"sha256:{}"}},
            {{"mediaType":"application/vnd.ollama.image.model","digest":"{digest}","size":1}}]}}"#,
            "f".repeat(64)
        )
    };
    manifest("smollm3/latest", layers(&format!("sha256:{hash}")));
    manifest("smollm3/3b", layers(&format!("sha256:{hash}")));
    manifest("gone/latest", layers(&format!("sha256:{}", "e".repeat(64))));
    manifest("out/latest", layers("sha256:../../../../etc/passwd"));
    manifest("damaged/latest", layers("x")[..40].to_owned());
    let folder = SearchFolder {
        place: ModelPlace::Ollama,
        path: models.join("manifests"),
        depth: 3,
    };
    let found = ModelSearch::default().run(&[folder], &[]);
    assert_eq!(names(&found), [format!("sha256-{hash}")]);
    assert_eq!(found[0].place, ModelPlace::Ollama);
    assert!(found[0].header.is_ok());
}

#[test]
fn a_model_of_another_architecture_is_listed_with_the_reason_why_it_does_not_run() {
    let home = tempfile::tempdir().expect("made");
    let mut bytes = fs::read(fixture()).expect("read");
    let name = b"smollm3";
    while let Some(at) = bytes.windows(name.len()).position(|part| part == name) {
        bytes[at..at + name.len()].copy_from_slice(b"gemma-3");
    }
    fs::write(home.path().join("other.gguf"), bytes).expect("written");
    let found = found(&home, 0);
    assert_eq!(names(&found), ["other.gguf"]);
    assert!(found[0].is_foreign());
    let refusal = found[0].header.as_ref().expect_err("it does not run");
    let label = refusal.foreign.as_ref().expect("it has a name");
    assert_eq!(label.quantisation, "Q4_K_M");
    assert!(!label.name.is_empty());
    assert_eq!(
        refusal.reason,
        "This is a Gemma 3 model. Goldcrest runs SmolLM3, SmolLM2, Llama 3, Qwen 2.5 and Qwen 3 files."
    );
}

#[test]
fn a_damaged_smollm3_file_is_listed_with_the_reason() {
    let home = tempfile::tempdir().expect("made");
    let whole = fs::read(fixture()).expect("read");
    let cut = home.path().join("SmolLM3-Q4_K_M.gguf");
    fs::write(&cut, &whole[..whole.len() / 2]).expect("written");
    fs::write(home.path().join("other.gguf"), &whole[..whole.len() / 2]).expect("written");
    let found = found(&home, 0);
    assert_eq!(names(&found), ["SmolLM3-Q4_K_M.gguf"]);
    let problem = &found[0].header.as_ref().expect_err("cut off").reason;
    assert!(problem.contains("incomplete"), "{problem}");
    // Once it is whole, its new stamp makes the header be read again.
    fs::write(&cut, &whole).expect("written");
    let search = ModelSearch::default();
    assert!(search.run(&[folder(home.path(), 0)], &[])[0].header.is_ok());
}

#[cfg(unix)]
#[test]
fn links_are_followed_once_and_a_snapshot_goes_by_its_name() {
    use std::os::unix::fs::symlink;
    let home = tempfile::tempdir().expect("made");
    let hub = home.path().join("hub");
    let repository = hub.join("models--ggml-org--SmolLM3-3B-GGUF");
    place(&repository.join("blobs/8334b8"));
    for commit in ["1", "2"] {
        let snapshot = repository.join("snapshots").join(commit);
        fs::create_dir_all(&snapshot).expect("made");
        symlink("../../blobs/8334b8", snapshot.join("SmolLM3-Q4_K_M.gguf")).expect("linked");
    }
    // A link that leads back up, one to itself, and one to nothing.
    symlink(&hub, repository.join("snapshots/1/up")).expect("linked");
    symlink("self.gguf", hub.join("self.gguf")).expect("linked");
    symlink("gone", hub.join("gone.gguf")).expect("linked");
    let hub_folder = SearchFolder {
        place: ModelPlace::HuggingFace,
        path: hub,
        depth: 50,
    };
    let found = ModelSearch::default().run(&[folder(home.path(), 50), hub_folder], &[]);
    assert_eq!(names(&found), ["SmolLM3-Q4_K_M.gguf"]);
    assert_eq!(found[0].place, ModelPlace::HuggingFace);
    assert!(found[0].path.ends_with("snapshots/1/SmolLM3-Q4_K_M.gguf"));
    assert!(found[0].stamp.path.ends_with("blobs/8334b8"));
}

#[cfg(unix)]
#[test]
fn a_folder_without_rights_is_passed_over() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().expect("made");
    place(&home.path().join("closed/a.gguf"));
    place(&home.path().join("open/b.gguf"));
    let closed = home.path().join("closed");
    let set = |mode| fs::set_permissions(&closed, fs::Permissions::from_mode(mode));
    set(0o000).expect("set");
    let found = found(&home, 2);
    set(0o700).expect("set");
    // The superuser may read it all the same.
    let names = names(&found);
    assert!(names.contains(&"b.gguf".to_owned()), "{names:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_name_that_is_not_utf_8_is_left_out() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let home = tempfile::tempdir().expect("made");
    // Both have the same name as text.
    for name in [&b"Smol\xff.gguf"[..], "Smol\u{fffd}.gguf".as_bytes()] {
        place(&home.path().join(OsStr::from_bytes(name)));
    }
    assert_eq!(names(&found(&home, 0)), ["Smol\u{fffd}.gguf"]);
}

#[test]
fn ten_thousand_files_are_searched_in_bounded_time() {
    let home = tempfile::tempdir().expect("made");
    for number in 0..10_000 {
        fs::write(home.path().join(format!("{number}.txt")), "").expect("written");
    }
    place(&home.path().join("SmolLM3.gguf"));
    let started = Instant::now();
    assert_eq!(names(&found(&home, 2)), ["SmolLM3.gguf"]);
    assert!(started.elapsed() < Duration::from_secs(10));

    let limits = SearchLimits {
        entries: 100,
        ..SearchLimits::default()
    };
    fs::create_dir(home.path().join("more")).expect("made");
    let search = ModelSearch::within(limits);
    assert!(search.run(&[folder(home.path(), 2)], &[]).len() <= 1);
    assert!(search.unfinished().is_empty());
}

#[test]
fn no_more_headers_are_read_than_the_limit() {
    let home = tempfile::tempdir().expect("made");
    for number in 0..20 {
        place(&home.path().join(format!("{number}.gguf")));
    }
    let search = ModelSearch::within(SearchLimits {
        headers: 5,
        ..SearchLimits::default()
    });
    assert_eq!(search.run(&[folder(home.path(), 0)], &[]).len(), 5);
}

#[test]
fn a_folder_that_does_not_answer_ends_no_search_and_is_not_entered_twice() {
    let home = tempfile::tempdir().expect("made");
    place(&home.path().join("a.gguf"));
    let search = ModelSearch::default();
    // State of an earlier search whose thread waits for a network.
    search.unfinished().insert(home.path().join("network"));
    let folders = [
        folder(&home.path().join("network"), 2),
        folder(home.path(), 2),
    ];
    assert_eq!(names(&search.run(&folders, &[])), ["a.gguf"]);
    assert_eq!(search.unfinished().len(), 1);
}

#[test]
fn settings_that_do_not_answer_are_waited_for_once() {
    let search = ModelSearch::within(SearchLimits {
        time: Duration::from_millis(50),
        ..SearchLimits::default()
    });
    let expected = vec![folder(Path::new("/a"), 1)];
    let given = expected.clone();
    assert_eq!(search.folders(move || given), Some(expected));
    let (answer, answered) = channel::<()>();
    let wait = move || {
        let _ = answered.recv();
        Vec::new()
    };
    assert_eq!(search.folders(wait), None);
    assert_eq!(search.folders(|| panic!("it is not asked again")), None);
    drop(answer);
    while !search.unfinished().is_empty() {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(search.folders(Vec::new), Some(Vec::new()));
    assert_eq!(search.folders(|| panic!("as if by a bug")), None);
    // The report of a panic may take longer than the limit.
    while !search.unfinished().is_empty() {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(search.folders(Vec::new), Some(Vec::new()));
}

#[test]
fn folders_are_named_to_a_search_that_follows_at_once() {
    let search = ModelSearch::default();
    for _ in 0..1000 {
        assert_eq!(search.folders(Vec::new), Some(Vec::new()));
    }
}

#[test]
fn a_header_that_could_not_be_read_is_read_again() {
    let home = tempfile::tempdir().expect("made");
    let path = home.path().join("SmolLM3.gguf");
    place(&path);
    let stamp = FileStamp::of(&path).expect("there");
    let search = ModelSearch::default();
    let away = home.path().join("away");
    fs::rename(&path, &away).expect("moved");
    let HeaderRead::Unsound(Unusable {
        reason: problem, ..
    }) = search.header(&path, &stamp)
    else {
        panic!("it is not there");
    };
    assert!(problem.starts_with("It could not be read: "), "{problem}");
    fs::rename(&away, &path).expect("moved");
    let read = search.header(&path, &stamp);
    assert!(matches!(read, HeaderRead::Sound(_)), "{read:?}");
}

#[cfg(unix)]
#[test]
fn a_search_ends_at_its_deadline() {
    let home = tempfile::tempdir().expect("made");
    place(&home.path().join("a.gguf"));
    let search = ModelSearch::within(SearchLimits {
        time: Duration::ZERO,
        ..SearchLimits::default()
    });
    let started = Instant::now();
    search.run(&[folder(home.path(), 2)], &[]);
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn an_opened_file_goes_by_the_path_by_which_it_was_opened() {
    let home = tempfile::tempdir().expect("made");
    place(&home.path().join("in/a.gguf"));
    place(&home.path().join("out/b.gguf"));
    let opened =
        ["in/../in/a.gguf", "out/b.gguf", "out/gone.gguf"].map(|path| home.path().join(path));
    let found = ModelSearch::default().run(&[folder(&home.path().join("in"), 0)], &opened);
    let places: Vec<_> = found.iter().map(|file| (&file.path, file.place)).collect();
    assert_eq!(
        places,
        [
            (&opened[0], ModelPlace::Downloads),
            (&opened[1], ModelPlace::Opened)
        ]
    );
}

/// Writes the tiny model as files of 20 tensors and of the rest, like `gguf-split`.
fn place_parts(folder: &Path, name: &str) -> [PathBuf; 2] {
    use engine::gguf::write::{self, Field, TensorSpec};
    fs::create_dir_all(folder).expect("made");
    let gguf = engine::Gguf::open(&fixture()).expect("a model");
    let tensors = gguf.tensors();
    let parts = [&tensors[..20], &tensors[20..]];
    [0, 1].map(|part| {
        let whole = gguf.stored_fields().into_iter();
        let whole = whole.map(|(key, value)| (key, Field::Stored(value.to_vec())));
        let fields = whole.filter(|_| part == 0).chain([
            ("split.no", Field::U32(part as u32)),
            ("split.count", Field::U32(2)),
            ("split.tensors.count", Field::I32(tensors.len() as i32)),
        ]);
        let specs: Vec<TensorSpec> = (parts[part].iter())
            .map(|tensor| TensorSpec {
                name: tensor.name.clone(),
                ty: tensor.ty,
                dims: tensor.dims.clone(),
                len: tensor.data.len(),
            })
            .collect();
        let mut image = write::header(fields, &specs);
        for spec in &specs {
            image.resize(image.len() + spec.len + write::padding(spec.len), 0);
        }
        let path = folder.join(format!("{name}-0000{}-of-00002.gguf", part + 1));
        fs::write(&path, image).expect("written");
        path
    })
}

#[test]
fn a_model_in_several_files_is_listed_once_with_the_size_of_all() {
    let home = tempfile::tempdir().expect("made");
    let [first, second] = place_parts(home.path(), "SmolLM3");
    let size = |path: &Path| fs::metadata(path).expect("there").len();
    let files = found(&home, 0);
    assert_eq!(names(&files), ["SmolLM3-00001-of-00002.gguf"]);
    assert_eq!(files[0].stamp.bytes, size(&first) + size(&second));
    assert_eq!(files[0].stamp.more.len(), 1);
    let header = files[0].header.as_ref().expect("sound");
    let whole = ModelHeader::open(&fixture()).expect("sound");
    assert_eq!(header.footprint, whole.footprint);
    // Opened by another part, it is shown under that name, and still once.
    let opened =
        ModelSearch::default().run(&[folder(home.path(), 0)], std::slice::from_ref(&second));
    assert_eq!(names(&opened), ["SmolLM3-00002-of-00002.gguf"]);
    assert_eq!(opened[0].stamp, files[0].stamp);
    // The hash covers all files; there is none if one of them has changed.
    let stamp = &files[0].stamp;
    let hash = |stamp: &FileStamp| crate::hash::sha256(stamp, &mut |_| {}).expect("read");
    let mut steps = 0;
    crate::hash::sha256(stamp, &mut |done| steps = done).expect("read");
    assert_eq!(steps, stamp.bytes);
    assert!(hash(stamp).is_some());
    let mut bytes = fs::read(&second).expect("read");
    let time = fs::metadata(&second)
        .and_then(|file| file.modified())
        .expect("has one");
    let copy = home.path().join("copy");
    fs::write(&copy, &bytes).expect("written");
    let opened = fs::File::options().write(true).open(&copy);
    opened
        .and_then(|file| file.set_modified(time))
        .expect("set");
    fs::rename(&copy, &second).expect("renamed");
    if cfg!(unix) {
        assert_eq!(hash(stamp), None, "another file of the same size and time");
    }
    bytes.push(0);
    fs::write(&second, bytes).expect("written");
    assert_eq!(hash(stamp), None);
}

#[test]
fn a_part_that_is_missing_is_named_and_one_that_comes_is_seen() {
    let home = tempfile::tempdir().expect("made");
    let parts = place_parts(home.path(), "SmolLM3");
    let search = ModelSearch::default();
    let list = || search.run(&[folder(home.path(), 0)], &[]);
    for missing in [0, 1] {
        let bytes = fs::read(&parts[missing]).expect("read");
        fs::remove_file(&parts[missing]).expect("removed");
        let files = list();
        assert_eq!(files.len(), 1, "{:?}", names(&files));
        let problem = &files[0]
            .header
            .as_ref()
            .expect_err("a part is missing")
            .reason;
        let name = format!("`SmolLM3-0000{}-of-00002.gguf`", missing + 1);
        assert!(problem.contains(&name), "{problem}");
        fs::write(&parts[missing], bytes).expect("written");
        let files = list();
        assert_eq!(names(&files), ["SmolLM3-00001-of-00002.gguf"]);
        assert!(files[0].header.is_ok());
    }
}

#[cfg(unix)]
#[test]
fn a_model_in_several_files_of_the_hubs_cache_is_found_by_its_links() {
    let home = tempfile::tempdir().expect("made");
    let home_path = home.path().canonicalize().expect("there");
    let parts = place_parts(&home_path.join("models--a--b/blobs"), "m");
    let snapshot = home_path.join("models--a--b/snapshots/1");
    fs::create_dir_all(&snapshot).expect("made");
    let mut blobs = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let blob = part.with_file_name(format!("{at}abc"));
        fs::rename(part, &blob).expect("renamed");
        let link = snapshot.join(part.file_name().expect("has one"));
        std::os::unix::fs::symlink(&blob, link).expect("linked");
        blobs.push(blob);
    }
    let files = ModelSearch::default().run(&[folder(&home_path, 5)], &[]);
    assert_eq!(names(&files), ["m-00001-of-00002.gguf"]);
    assert!(files[0].header.is_ok());
    assert_eq!(files[0].stamp.files().collect::<Vec<_>>(), blobs);
}

#[test]
fn of_several_files_the_first_gguf_is_opened() {
    let chosen = |names: &[&str]| model_among(names.iter().map(PathBuf::from).collect());
    assert_eq!(
        chosen(&["a.txt", "b.GGUF", "c.gguf"]),
        Some("b.GGUF".into())
    );
    assert_eq!(chosen(&["a.txt", "b"]), Some("a.txt".into()));
    assert_eq!(chosen(&[]), None);
}
