//! Folders of Hugging Face's tools, by the environment variables that they obey.
//!
//! Source: `constants.py` of huggingface_hub 1.18.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The hub's address.
pub const HUB: &str = "https://huggingface.co";

/// Lookup of an environment variable.
type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Returns the folder of the hub's cache: `HF_HUB_CACHE`, `HF_HOME/hub`, `XDG_CACHE_HOME/huggingface/hub`, or
/// `~/.cache/huggingface/hub`.
pub fn hub_folder(environment: Environment<'_>, home: &Path) -> PathBuf {
    set(environment, "HF_HUB_CACHE")
        .or_else(|| set(environment, "HUGGINGFACE_HUB_CACHE"))
        .map_or_else(
            || hub_home(environment, home).join("hub"),
            |folder| expanded(folder, home),
        )
}

/// Returns the file with the user's token, which `hf auth login` writes.
pub fn hub_token_file(environment: Environment<'_>, home: &Path) -> PathBuf {
    set(environment, "HF_TOKEN_PATH").map_or_else(
        || hub_home(environment, home).join("token"),
        |file| expanded(file, home),
    )
}

/// Returns the hub's address, or that of a mirror in `HF_ENDPOINT`, without a trailing slash.
pub fn hub_endpoint(environment: Environment<'_>) -> String {
    let set = set(environment, "HF_ENDPOINT").and_then(|it| it.into_string().ok());
    let endpoint = set.as_deref().map(str::trim).unwrap_or(HUB);
    endpoint.trim_end_matches('/').to_owned()
}

fn hub_home(environment: Environment<'_>, home: &Path) -> PathBuf {
    if let Some(folder) = set(environment, "HF_HOME") {
        return expanded(folder, home);
    }
    let cache = set(environment, "XDG_CACHE_HOME")
        .map_or_else(|| home.join(".cache"), |folder| expanded(folder, home));
    cache.join("huggingface")
}

fn set(environment: Environment<'_>, name: &str) -> Option<OsString> {
    environment(name).filter(|value| !value.is_empty())
}

/// Expands `~` to the home folder, as Hugging Face's tools do.
fn expanded(path: OsString, home: &Path) -> PathBuf {
    let path = PathBuf::from(path);
    match path.strip_prefix("~") {
        Ok(below) => home.join(below),
        Err(_) => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(variables: &[(&str, &str)]) -> PathBuf {
        let environment = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| OsString::from(value))
        };
        hub_folder(&environment, Path::new("/h"))
    }

    #[test]
    fn the_cache_is_where_huggingface_hub_has_it() {
        for (variables, expected) in [
            (&[][..], "/h/.cache/huggingface/hub"),
            (&[("XDG_CACHE_HOME", "/x")], "/x/huggingface/hub"),
            (&[("XDG_CACHE_HOME", "/x"), ("HF_HOME", "/y")], "/y/hub"),
            (&[("HF_HOME", "~/y")], "/h/y/hub"),
            (&[("HF_HOME", "/y"), ("HF_HUB_CACHE", "/z")], "/z"),
            (&[("HUGGINGFACE_HUB_CACHE", "/w")], "/w"),
            (&[("HF_HUB_CACHE", "")], "/h/.cache/huggingface/hub"),
        ] {
            assert_eq!(folder(variables), Path::new(expected), "{variables:?}");
        }
    }

    #[test]
    fn a_mirror_takes_the_hubs_place() {
        assert_eq!(hub_endpoint(&|_| None), HUB);
        let mirror = |name: &str| (name == "HF_ENDPOINT").then(|| "https://m.example/hf/".into());
        assert_eq!(hub_endpoint(&mirror), "https://m.example/hf");
    }
}
