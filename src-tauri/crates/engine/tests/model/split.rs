//! Models in several files, as llama.cpp's `gguf-split` writes them, and damaged sets of such files.

use std::fs;
use std::path::{Path, PathBuf};

use engine::gguf::write::{self, Field, TensorSpec};
use engine::gguf::{TensorInfo, model_files};
use engine::{Engine, Gguf, GgufError, Inspection, ModelFile, ModelHeader, OpenError};

use crate::reference::{exactly, fixture, on_cpu, open, reference};

const MODEL: &str = "tiny-q4_k_m";

/// Splits a model into files with this many tensors each: the first one has the metadata, and each says which part it is.
/// The numbers have the types that gguf-split writes.
fn split(model: &Path, folder: &Path, name: &str, sizes: &[usize]) -> Vec<PathBuf> {
    let gguf = Gguf::open(model).expect("a good file");
    let tensors = gguf.tensors();
    assert_eq!(sizes.iter().sum::<usize>(), tensors.len());
    let u16_field = |value: usize| Field::Stored([2, 0, 0, 0, value as u8, 0].to_vec());
    let mut first = 0;
    let mut paths = Vec::new();
    for (part, size) in sizes.iter().enumerate() {
        let tensors: &[TensorInfo] = &tensors[first..first + size];
        first += size;
        let whole = gguf.stored_fields().into_iter();
        let whole = whole.map(|(key, value)| (key, Field::Stored(value.to_vec())));
        let fields = whole.filter(|_| part == 0).chain([
            ("split.no", u16_field(part)),
            ("split.count", u16_field(sizes.len())),
            (
                "split.tensors.count",
                Field::I32(gguf.tensors().len() as i32),
            ),
        ]);
        let specs: Vec<TensorSpec> = tensors
            .iter()
            .map(|tensor| TensorSpec {
                name: tensor.name.clone(),
                ty: tensor.ty,
                dims: tensor.dims.clone(),
                len: tensor.data.len(),
            })
            .collect();
        let mut image = write::header(fields, &specs);
        for tensor in tensors {
            let stored = gguf.tensor(&tensor.name).expect("it is listed").bytes;
            image.extend_from_slice(&stored.read().expect("it can be read"));
            image.resize(image.len() + write::padding(tensor.data.len()), 0);
        }
        let count = sizes.len();
        let path = folder.join(format!("{name}-{:05}-of-{count:05}.gguf", part + 1));
        fs::write(&path, image).expect("written");
        paths.push(path);
    }
    paths
}

/// Sizes of three parts, the first without tensors, as `--no-tensor-first-split` makes it.
fn uneven(model: &Path) -> [usize; 3] {
    let all = Gguf::open(model).expect("a good file").tensors().len();
    [0, all - 7, 7]
}

fn parts(folder: &Path) -> Vec<PathBuf> {
    let model = fixture(&format!("{MODEL}.gguf"));
    split(&model, folder, "tiny", &uneven(&model))
}

fn error(path: &Path) -> GgufError {
    Gguf::open(path).err().expect("it is refused")
}

#[test]
fn a_model_in_several_files_has_the_logits_of_the_one_in_one_from_any_part() {
    let tokens = &reference().tokens[..24];
    for model in ["tiny-q4_k_m", "tiny-q8_0", "tiny-yarn-q8_0"] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = fixture(&format!("{model}.gguf"));
        let all = Gguf::open(&path).expect("a good file").tensors().len();
        let even = [all / 3, all / 3, all - 2 * (all / 3)];
        let parts = [
            split(&path, folder.path(), "uneven", &uneven(&path)),
            split(&path, folder.path(), "even", &even),
            split(&path, folder.path(), "two", &[1, all - 1]),
        ];
        for options in [on_cpu(), exactly()] {
            let expected = open(model, &options).logits(tokens, true).expect("logits");
            for part in parts.iter().flatten() {
                let mut engine = Engine::open(part, &options, &mut |_| {}).expect("it opens");
                let logits = engine.logits(tokens, true).expect("logits");
                assert!(logits == expected, "{}", part.display());
            }
        }
    }
}

#[test]
fn a_model_in_several_files_is_one_with_the_size_of_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = fixture(&format!("{MODEL}.gguf"));
    let parts = parts(folder.path());
    let size = |path: &Path| fs::metadata(path).expect("there").len();
    let bytes: u64 = parts.iter().map(|part| size(part)).sum();
    let expected = ModelHeader::open(&whole).expect("a model");
    let mut identities = Vec::new();
    for part in &parts {
        assert_eq!(model_files(part), parts, "{}", part.display());
        let header = ModelHeader::open(part).expect("a model");
        assert_eq!(header, expected, "name, quantisation and memory");
        let file = ModelFile::open(part).expect("a model");
        assert_eq!(file.summary().file_bytes, bytes);
        assert_eq!(
            file.summary().parameters,
            ModelFile::open(&whole)
                .expect("a model")
                .summary()
                .parameters
        );
        let engine = Engine::open(part, &on_cpu(), &mut |_| {}).expect("it opens");
        let identity = engine.kv_identity().expect("on the CPU");
        identities.push((
            file.content_hash(),
            file.summary().fingerprint.clone(),
            identity,
        ));
        let found = Inspection::of(part, None).expect("a GGUF file");
        assert_eq!(
            (found.files, found.file_bytes, found.problem),
            (3, bytes, None)
        );
        assert_eq!(found.tensors.len(), 47);
    }
    assert!(
        identities
            .iter()
            .all(|it| *it == identities[0] && it.0.is_some())
    );
    assert_eq!(model_files(&whole), [whole]);
}

#[test]
fn one_bit_of_any_part_is_another_identity() {
    let folder = tempfile::tempdir().expect("a folder");
    let parts = parts(folder.path());
    let identity = || {
        let engine = Engine::open(&parts[1], &on_cpu(), &mut |_| {}).expect("it opens");
        engine.kv_identity().expect("on the CPU")
    };
    let fingerprint = || {
        ModelFile::open(&parts[0])
            .expect("a model")
            .summary()
            .fingerprint
            .clone()
    };
    let ours = (identity(), fingerprint());
    for (part, from_end) in [(1, 4096), (2, 4096)] {
        let whole = fs::read(&parts[part]).expect("read");
        let mut changed = whole.clone();
        let at = changed.len() - from_end;
        changed[at] ^= 1;
        fs::write(&parts[part], &changed).expect("written");
        assert_ne!(identity(), ours.0, "part {part}");
        assert_eq!(fingerprint(), ours.1, "the same headers");
        fs::write(&parts[part], &whole).expect("written");
    }
    assert_eq!(identity(), ours.0);
    // The header of a later part, too.
    let mut changed = fs::read(&parts[2]).expect("read");
    changed.push(0);
    fs::write(&parts[2], &changed).expect("written");
    assert_ne!(fingerprint(), ours.1);
}

#[test]
fn a_part_that_is_missing_is_named() {
    for missing in 0..3 {
        let folder = tempfile::tempdir().expect("a folder");
        let parts = parts(folder.path());
        fs::remove_file(&parts[missing]).expect("removed");
        for (at, part) in parts.iter().enumerate() {
            if at == missing {
                assert!(matches!(error(part), GgufError::Io(_)));
                continue;
            }
            let name = format!("tiny-0000{}-of-00003.gguf", missing + 1);
            let error = error(part);
            assert!(
                matches!(&error, GgufError::MissingPart { file } if *file == name),
                "{error}"
            );
            assert!(error.to_string().contains(&name), "{error}");
            let left = parts.iter().enumerate().filter(|(at, _)| *at != missing);
            let left: Vec<&PathBuf> = left.map(|(_, part)| part).collect();
            assert_eq!(model_files(part).iter().collect::<Vec<_>>(), left);
        }
    }
}

#[test]
fn a_part_that_is_damaged_or_of_another_model_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let parts = parts(folder.path());
    let [_, second, third] = [0, 1, 2].map(|at| fs::read(&parts[at]).expect("read"));
    let name = "tiny-00003-of-00003.gguf";
    let third_is = |bytes: &[u8]| {
        fs::write(&parts[2], bytes).expect("written");
        error(&parts[0])
    };
    // A truncated part.
    let error = third_is(&third[..third.len() / 2]);
    let text = error.to_string();
    assert!(text.contains(name) && text.contains("incomplete"), "{text}");
    // A file that is not GGUF.
    let error = third_is(b"<!doctype html>");
    assert!(
        matches!(&error, GgufError::Part { file, .. } if file == name),
        "{error}"
    );
    // Another part of the same model under its name.
    let error = third_is(&second);
    assert!(
        matches!(&error, GgufError::ForeignPart { file } if file == name),
        "{error}"
    );
    let renamed = Gguf::open(&parts[2]).err().expect("it is refused");
    assert!(
        matches!(
            renamed,
            GgufError::PartName {
                number: 2,
                count: 3
            }
        ),
        "{renamed}"
    );
    // A whole model.
    let error = third_is(&fs::read(fixture(&format!("{MODEL}.gguf"))).expect("read"));
    assert!(
        matches!(&error, GgufError::ForeignPart { file } if file == name),
        "{error}"
    );
    // A part of a model with other tensors.
    let other = tempfile::tempdir().expect("a folder");
    let model = fixture(&format!("{MODEL}.gguf"));
    let all = Gguf::open(&model).expect("good").tensors().len();
    let others = split(&model, other.path(), "other", &[0, all - 8, 8]);
    let error = third_is(&fs::read(&others[2]).expect("read"));
    let text = error.to_string();
    assert!(
        text.contains("not all of one model") || text.contains("defined twice"),
        "{text}"
    );
    // A part of a model with another value of a shared key.
    let foreign = [
        ("split.no", Field::U32(2)),
        ("split.count", Field::U32(3)),
        ("split.tensors.count", Field::I32(all as i32)),
        ("general.architecture", Field::String("llama".to_owned())),
    ];
    let error = third_is(&write::header(foreign, &[]));
    assert!(
        matches!(&error, GgufError::ForeignPart { file } if file == name),
        "{error}"
    );
    // The original part.
    fs::write(&parts[2], &third).expect("written");
    assert!(ModelFile::open(&parts[0]).is_ok());
}

#[test]
fn a_part_of_another_name_says_which_part_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let parts = parts(folder.path());
    for name in [
        "mine.gguf",
        "tiny-00002-of-00004.gguf",
        "tiny-2-of-3.gguf",
        "tiny-00001-of-00003.gguf",
    ] {
        let renamed = folder.path().join(name);
        fs::copy(&parts[1], &renamed).expect("copied");
        let error = error(&renamed);
        assert!(
            matches!(
                error,
                GgufError::PartName {
                    number: 2,
                    count: 3
                }
            ),
            "{name}: {error}"
        );
        assert!(
            error.to_string().contains("`-00002-of-00003.gguf`"),
            "{error}"
        );
        assert_eq!(model_files(&renamed), [renamed]);
    }
}

#[test]
fn parts_that_were_joined_by_cat_are_named_as_that() {
    let folder = tempfile::tempdir().expect("a folder");
    let model = fixture(&format!("{MODEL}.gguf"));
    let all = Gguf::open(&model).expect("good").tensors().len();
    for sizes in [[20, all - 20], [0, all]] {
        let parts = split(&model, folder.path(), "tiny", &sizes);
        let joined = [0, 1]
            .map(|at| fs::read(&parts[at]).expect("read"))
            .concat();
        for name in ["joined.gguf", "joined-00001-of-00002.gguf"] {
            let path = folder.path().join(name);
            fs::write(&path, &joined).expect("written");
            assert!(
                matches!(error(&path), GgufError::Joined),
                "{}",
                error(&path)
            );
            let opened = ModelFile::open(&path).err().expect("it is refused");
            assert!(matches!(opened, OpenError::Gguf(GgufError::Joined)));
        }
    }
}

/// A whole model that is named like a part opens alone, without other files.
#[test]
fn a_name_alone_makes_no_part() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tiny-00001-of-00002.gguf");
    let other = folder.path().join("tiny-00002-of-00002.gguf");
    for path in [&path, &other] {
        fs::copy(fixture(&format!("{MODEL}.gguf")), path).expect("copied");
    }
    assert!(ModelFile::open(&path).is_ok());
    assert_eq!(model_files(&path), [path]);
    let none = folder.path().join("none-00001-of-00002.gguf");
    fs::write(&none, "GGUF").expect("written");
    assert_eq!(model_files(&none), [none]);
}

#[test]
fn absurd_numbers_of_parts_open_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    for (number, count) in [(0, 65_535), (7, 3), (3, 3), (0, u32::MAX), (u32::MAX, 2)] {
        let fields = [
            ("split.no", Field::U32(number)),
            ("split.count", Field::U32(count)),
        ];
        let path = folder.path().join(format!("a-00001-of-{count:05}.gguf"));
        fs::write(&path, write::header(fields, &[])).expect("written");
        let error = error(&path);
        assert!(
            !matches!(error, GgufError::Io(_)),
            "{number} of {count}: {error}"
        );
    }
}
