//! The GGUF reader on good files, on many kinds of damage, and on seeded random damage.

use engine::gguf::write::{self, Field, TensorSpec};
use engine::gguf::{BlockType, Value};
use engine::{Config, Gguf, GgufError, Tokenizer};

/// A small file with every kind of field and two tensors.
fn image() -> Vec<u8> {
    let strings =
        |texts: &[&str]| Field::Strings(texts.iter().map(|&text| text.to_owned()).collect());
    let fields = [
        ("general.architecture", Field::String("smollm3".to_owned())),
        ("general.alignment", Field::U32(32)),
        ("smollm3.block_count", Field::U32(1)),
        ("smollm3.context_length", Field::U32(64)),
        ("smollm3.embedding_length", Field::U32(32)),
        ("smollm3.feed_forward_length", Field::U32(64)),
        ("smollm3.attention.head_count", Field::U32(2)),
        ("smollm3.attention.head_count_kv", Field::U32(1)),
        ("smollm3.attention.layer_norm_rms_epsilon", Field::F32(1e-6)),
        ("smollm3.rope.freq_base", Field::F32(5e6)),
        ("smollm3.rope.dimension_count", Field::U32(16)),
        ("tokenizer.ggml.model", Field::String("gpt2".to_owned())),
        ("tokenizer.ggml.pre", Field::String("smaug-bpe".to_owned())),
        (
            "tokenizer.ggml.tokens",
            strings(&["a", "b", "ab", "<|im_end|>"]),
        ),
        ("tokenizer.ggml.token_type", Field::I32s(vec![1, 1, 1, 3])),
        ("tokenizer.ggml.merges", strings(&["a b"])),
        ("tokenizer.ggml.scores", Field::F32s(vec![0.5, -1.0])),
        ("tokenizer.ggml.add_bos_token", Field::Bool(false)),
    ];
    let tensors = [
        describe("token_embd.weight", BlockType::Q8_0, &[32, 4]),
        describe("output_norm.weight", BlockType::F32, &[32]),
    ];
    let mut image = write::header(fields, &tensors);
    for tensor in &tensors {
        image.resize(image.len() + tensor.len + write::padding(tensor.len), 7);
    }
    image
}

fn describe(name: &str, ty: BlockType, dims: &[usize]) -> TensorSpec {
    let rows: usize = dims[1..].iter().product();
    let len = rows * ty.row_bytes(dims[0]).expect("whole blocks");
    TensorSpec {
        name: name.to_owned(),
        ty,
        dims: dims.to_vec(),
        len,
    }
}

/// The image with the first occurrence of `from` replaced by `to` of the same length.
fn with(from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut image = image();
    let at = image
        .windows(from.len())
        .position(|window| window == from)
        .expect("it is there");
    image[at..at + to.len()].copy_from_slice(to);
    image
}

/// Offset of the bytes behind `name`.
fn after(image: &[u8], name: &str) -> usize {
    let at = image
        .windows(name.len())
        .position(|window| window == name.as_bytes());
    at.expect("it is there") + name.len()
}

fn error(image: Vec<u8>) -> String {
    match Gguf::from_bytes(image) {
        Ok(_) => panic!("the damage went unnoticed"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn fields_and_tensors_are_read_as_written() {
    let gguf = Gguf::from_bytes(image()).expect("a good file");
    assert_eq!(gguf.version(), 3);
    assert_eq!(gguf.str("general.architecture"), Some("smollm3"));
    assert_eq!(gguf.u32("smollm3.block_count"), Some(1));
    assert_eq!(gguf.f32("smollm3.rope.freq_base"), Some(5e6));
    assert_eq!(gguf.bool("tokenizer.ggml.add_bos_token"), Some(false));
    assert_eq!(
        gguf.strings("tokenizer.ggml.tokens"),
        Some(vec!["a", "b", "ab", "<|im_end|>"])
    );
    assert_eq!(
        gguf.i32s("tokenizer.ggml.token_type"),
        Some(vec![1, 1, 1, 3])
    );
    let Some(Value::Array(scores)) = gguf.get("tokenizer.ggml.scores") else {
        panic!("an array")
    };
    assert!(matches!(scores.iter().last(), Some(Value::Float(-1.0))));
    let tensor = gguf.tensor("token_embd.weight").expect("the first tensor");
    assert_eq!(
        (tensor.ty, tensor.rows, tensor.cols, tensor.bytes.len()),
        (BlockType::Q8_0, 4, 32, 136)
    );
    let bytes = tensor.bytes.read().expect("it is in memory");
    assert!(bytes.iter().all(|&byte| byte == 7));
    assert_eq!(gguf.tensors()[1].name, "output_norm.weight");
}

#[test]
fn a_key_of_another_type_reads_as_missing() {
    let gguf = Gguf::from_bytes(image()).expect("a good file");
    assert_eq!(gguf.u32("general.architecture"), None);
    assert_eq!(gguf.str("smollm3.block_count"), None);
    assert_eq!(gguf.i32s("tokenizer.ggml.tokens"), None);
    assert_eq!(gguf.str("no.such.key"), None);
}

#[test]
fn a_file_truncated_anywhere_is_an_error() {
    let image = image();
    for len in 0..image.len() - write::padding(128) {
        assert!(
            Gguf::from_bytes(image[..len].to_vec()).is_err(),
            "{len} of {} bytes",
            image.len()
        );
    }
}

#[test]
fn files_of_other_formats_are_rejected() {
    assert!(matches!(
        Gguf::from_bytes(b"PK\x03\x04 not a model".to_vec()),
        Err(GgufError::NotGguf)
    ));
    let old = with(b"GGUF\x03\0\0\0", b"GGUF\x01\0\0\0");
    assert!(matches!(Gguf::from_bytes(old), Err(GgufError::Version(1))));
    let big_endian = with(b"GGUF\x03\0\0\0", b"GGUF\0\0\0\x03");
    assert!(matches!(
        Gguf::from_bytes(big_endian),
        Err(GgufError::BigEndian)
    ));
    // The first bytes of a big-endian header.
    let header = b"GGUF\0\0\0\x02\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\x20".to_vec();
    assert!(matches!(
        Gguf::from_bytes(header),
        Err(GgufError::BigEndian)
    ));
    assert!(
        Gguf::open(std::path::Path::new(env!("CARGO_MANIFEST_DIR"))).is_err(),
        "a folder"
    );
}

#[test]
fn version_2_is_read_too() {
    assert!(Gguf::from_bytes(with(b"GGUF\x03", b"GGUF\x02")).is_ok());
}

#[test]
fn counts_out_of_range_are_rejected_before_any_allocation() {
    for at in [8, 16] {
        let mut image = image();
        image[at..at + 8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(error(image).contains("18446744073709551615"));
    }
    let mut image = image();
    let tokens = after(&image, "tokenizer.ggml.tokens") + 8;
    image[tokens..tokens + 8].copy_from_slice(&(1u64 << 60).to_le_bytes());
    let error = error(image);
    assert!(
        error.contains("`tokenizer.ggml.tokens`") && error.contains("1152921504606846976"),
        "{error}"
    );
}

#[test]
fn duplicates_are_refused() {
    let error_of_key = error(with(
        b"smollm3.attention.head_count\x04",
        b"smollm3.feed_forward_length\x04\0",
    ));
    assert!(!error_of_key.is_empty());
    let fields = || [("a", Field::U32(1)), ("a", Field::U32(2))];
    assert!(error(write::header(fields(), &[])).contains("`a`: it is there twice"));
    let twins = [
        describe("t", BlockType::F32, &[8]),
        describe("t", BlockType::F32, &[8]),
    ];
    let mut image = write::header([], &twins);
    image.resize(image.len() + 64, 0);
    assert!(error(image).contains("`t`: it is defined twice"));
}

#[test]
fn tensors_that_do_not_fit_are_named() {
    let base = image();
    let name = "token_embd.weight";
    let at = after(&base, name);
    // After the name: 4 bytes of dimension count, 8 + 8 of dimensions, 4 of type, 8 of offset.
    let set = |at: usize, bytes: &[u8]| {
        let mut image = base.clone();
        image[at..at + bytes.len()].copy_from_slice(bytes);
        error(image)
    };
    let cases = [
        (set(at, &5u32.to_le_bytes()), "5 dimensions"),
        (set(at, &9u32.to_le_bytes()), "9 dimensions"),
        (set(at, &0u32.to_le_bytes()), "0 dimensions"),
        (set(at + 4, &0u64.to_le_bytes()), "a dimension of 0"),
        (set(at + 4, &33u64.to_le_bytes()), "do not divide"),
        (set(at + 12, &u64::MAX.to_le_bytes()), "absurd"),
        (set(at + 12, &5u64.to_le_bytes()), "overlaps"),
        (set(at + 12, &500u64.to_le_bytes()), "past the end"),
        (set(at + 24, &1u64.to_le_bytes()), "not aligned"),
        (set(at + 24, &(1u64 << 40).to_le_bytes()), "past the end"),
        (set(at + 24, &(u64::MAX - 31).to_le_bytes()), "past the end"),
    ];
    for ty in [21u32, 999] {
        // Tensors of unknown types are checked, too.
        let mut image = base.clone();
        image[at + 20..at + 24].copy_from_slice(&ty.to_le_bytes());
        let with = |at: usize, bytes: &[u8]| {
            let mut image = image.clone();
            image[at..at + bytes.len()].copy_from_slice(bytes);
            error(image)
        };
        assert!(with(at + 12, &u64::MAX.to_le_bytes()).contains("absurd"));
        assert!(with(at + 24, &1u64.to_le_bytes()).contains("not aligned"));
        assert!(with(at + 24, &(1u64 << 40).to_le_bytes()).contains("past the end"));
    }
    for (error, expected) in cases {
        assert!(
            error.contains(expected),
            "`{error}` does not say `{expected}`"
        );
    }
}

#[test]
fn the_alignment_is_honoured() {
    let mut image = image();
    let at = after(&image, "general.alignment") + 4;
    for alignment in [0u32, 3, 4, 48] {
        image[at..at + 4].copy_from_slice(&alignment.to_le_bytes());
        assert!(
            error(image.clone()).contains("`general.alignment`"),
            "{alignment}"
        );
    }
    let fields = [("general.alignment", Field::U32(64))];
    let mut image = write::header(fields, &[describe("t", BlockType::F32, &[2])]);
    image.resize(image.len().next_multiple_of(64), 0);
    image.extend([1.0f32, 2.0].into_iter().flat_map(f32::to_le_bytes));
    let gguf = Gguf::from_bytes(image).expect("a good file");
    assert_eq!(
        *(gguf.tensor("t").expect("the tensor").bytes.read()).expect("it is in memory"),
        [0, 0, 128, 63, 0, 0, 0, 64]
    );
}

#[test]
fn text_that_is_not_utf_8_is_refused_where_the_model_needs_it() {
    assert!(error(with(b"smaug-bpe", b"smaug\xffbpe")).contains("`tokenizer.ggml.pre`"));
    assert!(error(with(b"<|im_end|>", b"<|im\xffend|>")).contains("`tokenizer.ggml.tokens`"));
    let text = |key: &'static str, bytes: &[u8]| {
        let mut stored = 8u32.to_le_bytes().to_vec();
        stored.extend((bytes.len() as u64).to_le_bytes());
        stored.extend(bytes);
        Gguf::from_bytes(write::header([(key, Field::Stored(stored))], &[]))
    };
    let bad = b"bad \xff\xfe name";
    for key in ["general.architecture", "tokenizer.chat_template", "mine"] {
        let error = text(key, bad).err().expect("it is refused").to_string();
        assert!(error.contains(key) && error.contains("UTF-8"), "{error}");
    }
    for key in ["general.name", "general.description", "general.license"] {
        let gguf = text(key, bad).expect("it describes, and is not needed");
        assert_eq!(gguf.str(key), None);
        let Some(Value::NotUtf8(found)) = gguf.get(key) else {
            panic!("its bytes");
        };
        assert_eq!(found, bad);
        // The tags of a model are a list.
        let mut list = 9u32.to_le_bytes().to_vec();
        list.extend(8u32.to_le_bytes());
        list.extend(1u64.to_le_bytes());
        list.extend((bad.len() as u64).to_le_bytes());
        list.extend(bad);
        let header = write::header([(key, Field::Stored(list))], &[]);
        let gguf = Gguf::from_bytes(header).expect("it describes, and is not needed");
        assert_eq!((gguf.array_len(key), gguf.strings(key)), (Some(1), None));
    }
}

#[test]
fn a_tensor_of_a_type_that_cannot_be_read_is_listed_apart() {
    let base = image();
    let name = "output_norm.weight";
    let at = after(&base, name);
    for (ty, expected) in [
        (9u32, "Q8_1"),
        (15, "Q8_K"),
        (16, "IQ2_XXS"),
        (21, "IQ3_S"),
        (22, "IQ2_S"),
        (29, "IQ1_M"),
        (34, "TQ1_0"),
        (35, "TQ2_0"),
        (39, "MXFP4"),
        (999, "999"),
    ] {
        let mut image = base.clone();
        image[at + 12..at + 16].copy_from_slice(&ty.to_le_bytes());
        let gguf = Gguf::from_bytes(image).expect("a good file");
        let names: Vec<&str> = gguf.tensors().iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["token_embd.weight"]);
        assert!(gguf.tensor_info(name).is_none() && gguf.tensor(name).is_none());
        let [tensor] = gguf.unsupported_tensors() else {
            panic!("one tensor");
        };
        assert_eq!((&*tensor.name, &*tensor.ty), (name, expected));
        assert_eq!((&tensor.dims[..], tensor.bytes), (&[32][..], 128));
        assert_eq!(
            gguf.unsupported_tensor(name).map(|it| &*it.ty),
            Some(expected)
        );
        assert!(gguf.unsupported_tensor("token_embd.weight").is_none());
    }
    // A tensor of a known and one of an unknown type may not share a name.
    let mut twins = write::header(
        [],
        &[
            describe("t", BlockType::F32, &[8]),
            describe("t", BlockType::F32, &[8]),
        ],
    );
    let ty = twins
        .windows(5)
        .rposition(|it| it == b"t\x01\0\0\0")
        .expect("the second")
        + 13;
    twins[ty..ty + 4].copy_from_slice(&21u32.to_le_bytes());
    twins.resize(twins.len() + 64, 0);
    assert!(error(twins).contains("`t`: it is defined twice"));
}

#[test]
fn text_of_a_file_is_quoted_on_one_line_in_its_own_order() {
    use engine::gguf::quote;
    assert_eq!(quote("Größe 日本 🦅 שלום"), "Größe 日本 🦅 שלום");
    assert_eq!(
        quote("a\nb\r\tc\u{1b}[2J\u{9b}\u{2028}\u{202e}fdp\u{2066}\0"),
        "a\\nb\\r\\tc\\u{1b}[2J\\u{9b}\\u{2028}\\u{202e}fdp\\u{2066}\\u{0}"
    );
    assert_eq!(quote(&"x".repeat(201)), format!("{}…", "x".repeat(200)));
    assert_eq!(quote(&"x".repeat(200)), "x".repeat(200));
}

/// Reads a few thousand damaged files; `GOLDCREST_FUZZ` sets another number.
#[test]
fn random_damage_neither_panics_nor_exhausts_memory() {
    let cases = std::env::var("GOLDCREST_FUZZ")
        .ok()
        .and_then(|cases| cases.parse().ok());
    let base = image();
    let before = peak_resident();
    let (mut random, mut good) = (Lcg(1), 0);
    let cases = cases.unwrap_or(5_000);
    for _ in 0..cases {
        good += u32::from(survives(damaged(&base, &mut random)));
    }
    assert!(
        good > 0 && good < cases,
        "damage must sometimes matter and sometimes not: {good} of {cases}"
    );
    let grown = peak_resident().saturating_sub(before);
    assert!(
        grown < 64 << 20,
        "files of {} bytes took {grown} bytes to read",
        base.len()
    );
}

/// Reads all that a damaged file still has; returns true if it is a good file.
fn survives(image: Vec<u8>) -> bool {
    let Ok(gguf) = Gguf::from_bytes(image) else {
        return false;
    };
    for key in gguf.keys() {
        if let Some(Value::Array(array)) = gguf.get(key) {
            assert_eq!(array.iter().count(), array.len(), "{key}");
        }
    }
    for tensor in gguf.tensors() {
        let view = gguf.tensor(&tensor.name).expect("it is listed");
        assert_eq!(
            Some(view.bytes.len()),
            view.ty.row_bytes(view.cols).map(|row| row * view.rows)
        );
    }
    // They may refuse the file, but must return.
    let _ = Config::from_gguf(&gguf);
    let _ = Tokenizer::from_gguf(&gguf);
    true
}

fn damaged(base: &[u8], random: &mut Lcg) -> Vec<u8> {
    let mut image = base.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(image.len() - 8);
        match random.below(6) {
            0 => image[at] ^= 1 << random.below(8),
            1 => image[at] = random.below(256) as u8,
            2 => image.truncate(at + 8),
            3 => drop(image.drain(at..at + random.below(8))),
            4 => image[at..at + 8].copy_from_slice(&random.odd_number().to_le_bytes()),
            _ => image[at..at + 4].copy_from_slice(&(random.odd_number() as u32).to_le_bytes()),
        }
        image.resize(image.len().max(16), 0);
    }
    image
}

/// Knuth's linear congruential generator: enough to choose damage by.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound.max(1)
    }

    /// A number that code tends to get wrong.
    fn odd_number(&mut self) -> u64 {
        let edges = [
            0,
            1,
            u64::MAX,
            1 << 31,
            1 << 32,
            1 << 62,
            1 << 63,
            (1 << 63) - 1,
            65_536,
            32,
        ];
        edges[self.below(edges.len())]
            .wrapping_add(self.below(3) as u64)
            .wrapping_sub(1)
    }
}

/// The most memory that this process held, in bytes; 0 if the system does not report it.
fn peak_resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap_or("0");
    line.trim()
        .trim_end_matches(" kB")
        .parse::<u64>()
        .unwrap_or(0)
        << 10
}

#[test]
fn a_boolean_is_zero_or_one() {
    let read = |value: u8| {
        let no = *b"add_bos_token\x07\0\0\0\0";
        let mut other = no;
        other[no.len() - 1] = value;
        Gguf::from_bytes(with(&no, &other))
    };
    let yes = read(1).expect("a GGUF");
    assert_eq!(yes.bool("tokenizer.ggml.add_bos_token"), Some(true));
    let error = read(2).err().map(|error| error.to_string());
    let error = error.expect("it is damaged");
    assert!(
        error.contains("add_bos_token") && error.contains("2 is not a boolean"),
        "{error}"
    );
}
