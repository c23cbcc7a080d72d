use std::path::PathBuf;

/// Returns the file of the tests' model: SmolLM3's architecture and chat format in 4.6 MB. It thinks.
pub fn tiny_model() -> PathBuf {
    let file = "../engine/tests/fixtures/tiny-smollm3-q4_k_m.gguf";
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file)
}
