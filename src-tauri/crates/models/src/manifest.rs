//! The list of known models, `models/manifest.json`, which is compiled in.

use serde::Deserialize;

const EMBEDDED: &str = include_str!("../../../../models/manifest.json");

/// The known models, in the order in which they are offered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Manifest {
    /// Models; each is one file.
    pub models: Vec<KnownModel>,
}

/// A model file whose size and SHA-256 are known.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownModel {
    /// Its name, such as `SmolLM3-3B`.
    pub name: String,
    /// The file's name in its repository; the bundled model's path below `models/`.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its content, 64 hexadecimal digits in lower case.
    pub sha256: String,
    /// The quantisation mix, such as `Q4_K_M`.
    pub quantisation: String,
    /// SPDX expression of its licence.
    pub licence: String,
    /// Its origin, in words.
    pub source: String,
    /// Its repository on Hugging Face, `owner/name`; `None` if it is not downloaded.
    pub repository: Option<String>,
    /// The commit of the repository, 40 hexadecimal digits; set with a repository.
    pub revision: Option<String>,
    /// Public sources beside the repository that give the same size and SHA-256, for those who change the list. A test
    /// of the list requires two.
    #[serde(default)]
    pub confirmed: Vec<String>,
}

/// Reasons for rejecting a manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It is not JSON of this form.
    #[error("the list of known models cannot be read: {0}")]
    Form(#[from] serde_json::Error),
    /// A value is impossible.
    #[error("the list of known models: {file}: {problem}")]
    Entry {
        /// The entry's file.
        file: String,
        /// The problem.
        problem: &'static str,
    },
}

impl Manifest {
    /// Returns the manifest that is compiled in. A test parses it, so it is never empty.
    pub fn embedded() -> Manifest {
        Manifest::parse(EMBEDDED).unwrap_or_default()
    }

    /// Parses a manifest and checks its values.
    ///
    /// # Errors
    /// Returns the first invalid value.
    pub fn parse(json: &str) -> Result<Manifest, ManifestError> {
        let manifest: Manifest = serde_json::from_str(json)?;
        for model in &manifest.models {
            if let Some(problem) = model.problem() {
                let file = model.file.clone();
                return Err(ManifestError::Entry { file, problem });
            }
        }
        Ok(manifest)
    }

    /// Returns the model whose file has this name, as `goldcrest fetch` and the page name it.
    pub fn by_file(&self, file: &str) -> Option<&KnownModel> {
        self.models.iter().find(|model| model.file == file)
    }

    /// Returns whether a file of this size may be one of the models.
    pub fn has_size(&self, bytes: u64) -> bool {
        self.models.iter().any(|model| model.bytes == bytes)
    }

    /// Returns the models that can be downloaded, the recommended one first.
    pub fn downloadable(&self) -> impl Iterator<Item = &KnownModel> {
        self.models
            .iter()
            .filter(|model| model.repository.is_some())
    }

    /// Returns the model that newcomers are offered.
    pub fn recommended(&self) -> Option<&KnownModel> {
        self.downloadable().next()
    }
}

impl KnownModel {
    /// Returns the address of the download: at the hub, or at a mirror of it.
    pub fn address(&self, endpoint: &str) -> Option<String> {
        let (repository, revision) = self.hub()?;
        let file = &self.file;
        Some(format!("{endpoint}/{repository}/resolve/{revision}/{file}"))
    }

    /// Returns the address of the page about it.
    pub fn page(&self) -> Option<String> {
        let (repository, revision) = self.hub()?;
        let file = &self.file;
        Some(format!(
            "https://huggingface.co/{repository}/blob/{revision}/{file}"
        ))
    }

    /// Returns its repository and the commit.
    pub fn hub(&self) -> Option<(&str, &str)> {
        self.repository.as_deref().zip(self.revision.as_deref())
    }

    /// Returns the first invalid value. A file's name becomes a path, so it may not lead elsewhere.
    fn problem(&self) -> Option<&'static str> {
        let is_hex = |text: &str, digits| {
            text.len() == digits && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_plain = |part: &str| !part.is_empty() && !part.starts_with('.') && is_name(part);
        if self.bytes == 0 {
            return Some("its size is 0");
        }
        if !is_hex(&self.sha256, 64) {
            return Some("its SHA-256 is not 64 hexadecimal digits");
        }
        if !self.file.split('/').all(is_plain) || !self.file.ends_with(".gguf") {
            return Some("its file is not the name of a GGUF file");
        }
        match (&self.repository, &self.revision) {
            (None, None) => None,
            (Some(repository), Some(revision)) => {
                let parts: Vec<&str> = repository.split('/').collect();
                let is_repository = parts.len() == 2 && parts.iter().all(|part| is_plain(part));
                if !is_repository {
                    Some("its repository is not an owner and a name")
                } else if !is_hex(revision, 40) {
                    Some("its revision is not 40 hexadecimal digits")
                } else if self.file.contains('/') {
                    Some("a file to be downloaded is not in a folder")
                } else {
                    None
                }
            }
            _ => Some("it has a repository without a revision, or a revision without a repository"),
        }
    }
}

fn is_name(part: &str) -> bool {
    (part.bytes()).all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_manifest_is_sound() {
        let manifest = Manifest::parse(EMBEDDED).expect("it is sound");
        assert_eq!(manifest, Manifest::embedded());
        assert!(manifest.by_file("SmolLM3-Q4_K_M.gguf").is_some());
        let bundled = manifest
            .by_file("bundled/SmolLM2-135M-Instruct.Q4_1.gguf")
            .expect("there");
        assert_eq!(
            (bundled.address("https://huggingface.co"), bundled.page()),
            (None, None)
        );
    }

    /// Parses a valid manifest of one model, in which `from` is replaced.
    fn changed(from: &str, to: &str) -> Result<Manifest, ManifestError> {
        let sha256 = "a".repeat(64);
        let revision = "b".repeat(40);
        let sound = format!(
            r#"{{ "models": [{{ "name": "N", "file": "n.gguf", "bytes": 7, "sha256": "{sha256}",
               "quantisation": "Q8_0", "licence": "MIT", "source": "s",
               "repository": "me/it", "revision": "{revision}" }}] }}"#
        );
        assert!(sound.contains(from), "{from}");
        Manifest::parse(&sound.replace(from, to))
    }

    #[test]
    fn an_address_is_made_of_repository_revision_and_file() {
        let manifest = changed("n.gguf", "n.gguf").expect("sound");
        let model = manifest.recommended().expect("one");
        let revision = "b".repeat(40);
        assert_eq!(
            model.address("https://mirror.example"),
            Some(format!(
                "https://mirror.example/me/it/resolve/{revision}/n.gguf"
            ))
        );
    }

    #[test]
    fn a_manifest_that_cannot_be_right_is_not_used_and_says_why() {
        for (from, to, words) in [
            ("\"bytes\": 7", "\"bytes\": 0", "size is 0"),
            ("\"bytes\": 7", "\"bytes\": -7", "cannot be read"),
            ("\"sha256\": \"aa", "\"sha256\": \"AA", "SHA-256"),
            ("\"sha256\": \"aa", "\"sha256\": \"a", "SHA-256"),
            ("n.gguf", "../n.gguf", "not the name"),
            ("n.gguf", "/n.gguf", "not the name"),
            ("n.gguf", "a\\\\n.gguf", "not the name"),
            ("n.gguf", "n.exe", "not the name"),
            ("n.gguf", "a/n.gguf", "not in a folder"),
            ("me/it", "it", "an owner and a name"),
            ("me/it", "me/..", "an owner and a name"),
            (
                "\"revision\": \"bb",
                "\"revision\": \"main",
                "40 hexadecimal",
            ),
            ("\"repository\": \"me/it\",", "", "without"),
        ] {
            let error = changed(from, to).expect_err(to).to_string();
            assert!(error.contains(words), "{to}: {error}");
        }
    }
}
