//! Addresses that the user types in.

use std::path::{Path, PathBuf};

use url::Url;

use crate::hub::HUB;
use crate::request::{Destination, DownloadRequest, is_file_name, is_repository_name};

/// Folders for the files of typed addresses.
#[derive(Debug, Clone)]
pub struct Places {
    /// The hub's cache.
    pub hub: PathBuf,
    /// The hub's address, or that of a mirror.
    pub endpoint: String,
    /// Folder of the user, in place of the cache. Files that are not on the hub need it.
    pub folder: Option<PathBuf>,
}

/// Reasons for refusing an address. Each is a sentence for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not an address.
    #[error("This is not an address: it should begin with https://.")]
    Form,
    /// Neither https nor http on the loopback.
    #[error("An address has to begin with https://; http:// is for servers on this computer only.")]
    Scheme,
    /// It has credentials before the host.
    #[error("An address with a name or a password in it is not accepted.")]
    Password,
    /// Not a model.
    #[error(
        "This address does not lead to a GGUF file. On Hugging Face, open the file's page and copy its address, which ends in .gguf."
    )]
    NotGguf,
    /// It is not on the hub, and no folder was given.
    #[error("A file that is not on Hugging Face needs a folder to go to.")]
    NoFolder,
}

impl DownloadRequest {
    /// Parses an address: a file of the hub, by the address of the file or of its page, or a file elsewhere. Size and
    /// SHA-256 are not known yet.
    ///
    /// # Errors
    /// Returns the reason for which the address is refused.
    pub fn of_address(text: &str, places: &Places) -> Result<Self, AddressError> {
        let mut url = parse_address(text.trim())?;
        url.set_fragment(None);
        let destination = match hub_file(&url, &places.endpoint) {
            Some(found) => {
                let path = format!(
                    "{}/resolve/{}/{}",
                    found.repository, found.revision, found.file
                );
                let endpoint = places.endpoint.trim_end_matches('/');
                url = Url::parse(&format!("{endpoint}/{path}")).map_err(|_| AddressError::Form)?;
                match &places.folder {
                    Some(folder) => in_folder(folder, &found.file)?,
                    None => Destination::HubCache {
                        hub: places.hub.clone(),
                        repository: found.repository,
                        revision: found.revision,
                        file: found.file,
                    },
                }
            }
            None => {
                let folder = places.folder.as_ref().ok_or(AddressError::NoFolder);
                let last = url.path_segments().and_then(Iterator::last).map(decoded);
                let name = last.unwrap_or_default();
                if !is_gguf(&name) {
                    return Err(AddressError::NotGguf);
                }
                in_folder(folder?, &name)?
            }
        };
        Ok(Self {
            url: url.into(),
            destination,
            bytes: None,
            sha256: None,
        })
    }
}

/// Parses an address that may be downloaded from: encrypted, or of this computer.
///
/// # Errors
/// Returns the reason for which the address is refused.
pub fn parse_address(text: &str) -> Result<Url, AddressError> {
    let url = Url::parse(text).map_err(|_| AddressError::Form)?;
    let is_allowed = match url.scheme() {
        "https" => true,
        "http" => is_loopback(&url),
        _ => false,
    };
    if !is_allowed {
        return Err(AddressError::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(AddressError::Password);
    }
    Ok(url)
}

/// Returns whether an address is of this computer.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

struct HubFile {
    repository: String,
    revision: String,
    file: String,
}

/// Parses `ENDPOINT/OWNER/NAME/resolve/REVISION/FILE`, or `blob` in place of `resolve`.
fn hub_file(url: &Url, endpoint: &str) -> Option<HubFile> {
    let mut hubs = [endpoint, HUB, "https://hf.co"].into_iter();
    let path = hubs.find_map(|hub| {
        let rest = url.as_str().strip_prefix(hub.trim_end_matches('/'))?;
        rest.strip_prefix('/')
    })?;
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let parts: Vec<String> = path.split('/').map(decoded).collect();
    let [owner, name, kind, revision, file @ ..] = parts.as_slice() else {
        return None;
    };
    let is_file = matches!(kind.as_str(), "resolve" | "blob")
        && [owner, name, revision]
            .into_iter()
            .all(|part| is_repository_name(part))
        && file.iter().all(|part| is_file_name(part))
        && file.last().is_some_and(|name| is_gguf(name));
    is_file.then(|| HubFile {
        repository: format!("{owner}/{name}"),
        revision: revision.clone(),
        file: file.join("/"),
    })
}

fn in_folder(folder: &Path, file: &str) -> Result<Destination, AddressError> {
    let name = file.rsplit('/').next().unwrap_or(file);
    if !is_file_name(name) {
        return Err(AddressError::NotGguf);
    }
    Ok(Destination::Folder {
        folder: folder.to_owned(),
        file: name.to_owned(),
    })
}

fn is_gguf(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".gguf")
}

/// Decodes the percent-encoding of a path segment. One that cannot be decoded is left as it is, and is then no file
/// name.
fn decoded(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let code = (byte == b'%')
            .then(|| behind.get(..2))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(code) => {
                bytes.push(code);
                rest = &behind[2..];
            }
            None => {
                bytes.push(byte);
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| "/".to_owned())
}
