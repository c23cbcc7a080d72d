//! Models of Ollama: a manifest for each name, which lists the digests of its files, and the files by their digests.
//!
//! ```text
//! manifests/registry.ollama.ai/library/llama3.2/3b    {"layers": [{"mediaType": "…image.model", "digest": "sha256:…"}]}
//! blobs/sha256-…                                      the GGUF file
//! ```
//!
//! Source: github.com/ollama/ollama, `manifest` and `types/model`.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::small_file::read_small;

/// The folder of manifests, below that of the models.
pub(crate) const MANIFESTS: &str = "manifests";

const MODEL: &str = "application/vnd.ollama.image.model";

#[derive(Deserialize)]
struct OllamaManifest {
    layers: Vec<OllamaLayer>,
}

#[derive(Deserialize)]
struct OllamaLayer {
    #[serde(rename = "mediaType")]
    media_type: String,
    digest: String,
}

/// Returns the model file that a manifest names, if the path is one of a manifest.
pub(crate) fn model_of(manifest: &Path) -> Option<PathBuf> {
    let read: OllamaManifest = serde_json::from_str(&read_small(manifest)?).ok()?;
    let layer = read.layers.into_iter().find(|it| it.media_type == MODEL)?;
    let hash = layer.digest.strip_prefix("sha256:")?;
    // A digest becomes a part of a path here, and may be anything.
    if hash.len() != 64 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let manifests = manifest
        .ancestors()
        .find(|folder| folder.ends_with(MANIFESTS))?;
    let models = manifests.parent()?;
    Some(models.join("blobs").join(format!("sha256-{hash}")))
}
