//! Errors of a download. Each is a sentence for the user: the cause, the place, and the remedy.

use std::io;
use std::path::{Path, PathBuf};

use download::{AddressError, DownloadRequest, LockError, RequestError};

#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("{0}.")]
    Request(#[from] RequestError),
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error("The address in HF_ENDPOINT cannot be used. {0}")]
    Endpoint(AddressError),
    #[error(
        "HF_TOKEN, or the file with the token, has characters that no token has. Set it again."
    )]
    BadToken,
    #[error("The proxy {name:?} of {variable} is not one that can be used: {reason}.")]
    BadProxy {
        variable: &'static str,
        name: String,
        reason: String,
    },
    #[error("Can't reach {host}: {reason}. Check your internet connection and try again.")]
    Unreachable { host: String, reason: String },
    #[error(
        "{host} does not prove who it is: {reason}. Check the date of this computer; behind a proxy that opens encrypted connections, its certificate has to be installed in the system."
    )]
    Untrusted { host: String, reason: String },
    #[error(
        "An encrypted connection to {host} cannot be made: {reason}. A proxy or a firewall on the way may be the cause."
    )]
    Encryption { host: String, reason: String },
    #[error("{host} stopped sending. What was downloaded is kept: resume it later.")]
    Stalled { host: String },
    #[error(
        "{host} sends next to nothing: a few kilobytes in two minutes. What was downloaded is kept: resume it later."
    )]
    TooSlow { host: String },
    #[error(
        "{host} does not say how large the file is, and sends without end. Nothing of it was kept. Choose another address."
    )]
    Endless { host: String },
    #[error(
        "The connection to {host} breaks off again and again. What was downloaded is kept: resume it later."
    )]
    CutOff { host: String },
    #[error("{host} does not speak HTTP as it should: {reason}.")]
    Protocol { host: String, reason: String },
    #[error(
        "{host} does not give this file out (HTTP {status}): it does not exist, or its owner grants access to it. Where you have that, set HF_TOKEN to your token."
    )]
    NeedsToken { host: String, status: u16 },
    #[error(
        "{host} does not give this file out with your token (HTTP {status}). Accept the model's terms on its page, or set HF_TOKEN to a token that may read it."
    )]
    TokenRefused { host: String, status: u16 },
    #[error(
        "{host} does not give this file out (HTTP {status}). Check the address, or try again later."
    )]
    Refused { host: String, status: u16 },
    #[error("There is no such file at {address} (HTTP {status}). Check the address.")]
    NotFound { address: String, status: u16 },
    #[error(
        "{host} cannot send the file at the moment (HTTP {status}). What was downloaded is kept: resume it later."
    )]
    Busy {
        host: String,
        status: u16,
        /// Seconds that the server requests.
        retry_after: Option<u32>,
    },
    #[error("{host} answered with an error (HTTP {status}).")]
    Status { host: String, status: u16 },
    #[error(
        "{host} sent a web page in place of the file. Check the address; in a network with a sign-in page, sign in first."
    )]
    WebPage { host: String },
    #[error("{host} sent the file in an encoding that was not asked for ({encoding}).")]
    Encoded { host: String, encoding: String },
    #[error("{host} leads from one address to the next without end.")]
    TooManyRedirects { host: String },
    #[error(
        "{host} leads to {to}, an address that is not encrypted or not of the web. It was not followed."
    )]
    UnsafeRedirect { host: String, to: String },
    #[error(
        "The file at {host} has {found} bytes, and the one that was asked for has {expected}. It was not downloaded."
    )]
    Size {
        host: String,
        found: u64,
        expected: u64,
    },
    #[error(
        "The file at {host} is not the one that was asked for: its SHA-256 begins with {found:.16} in place of {expected:.16}. It was not downloaded."
    )]
    Hash {
        host: String,
        found: String,
        expected: String,
    },
    #[error(
        "{host} does not say the file's SHA-256, so the file cannot be verified. Choose a file on Hugging Face; `goldcrest fetch` takes the SHA-256 with --sha256."
    )]
    NoHash { host: String },
    #[error(
        "{host} does not say of which commit this file is, so it cannot go to Hugging Face's cache. Choose a folder for it."
    )]
    NoCommit { host: String },
    #[error(
        "The file at {host} is not the one that was asked for: its SHA-256 begins with {found:.16} in place of {expected:.16}. Nothing of it was kept."
    )]
    WrongContent {
        host: String,
        found: String,
        expected: String,
    },
    #[error(
        "{path} is there already and has other content. Move it away, or choose another folder."
    )]
    Exists { path: PathBuf },
    #[error(
        "Another program is downloading this file at the moment. Wait for it, or stop it there."
    )]
    Held,
    #[error(
        "{path} was removed or replaced by another program while it was written. Start the download again."
    )]
    Replaced { path: PathBuf },
    #[error(
        "{path} is gone: its drive was disconnected, or another program removed it. Connect the drive again, then resume the download."
    )]
    Lost { path: PathBuf },
    #[error("{} more are needed on the disk of {folder}, and {} are free. Free some space, then resume the download.", gigabytes(*needed), gigabytes(*free))]
    NoSpace {
        folder: PathBuf,
        needed: u64,
        free: u64,
    },
    #[error("The disk of {folder} is full. Free some space, then resume the download.")]
    DiskFull { folder: PathBuf },
    #[error("{path} cannot be written: {source}.")]
    File { path: PathBuf, source: io::Error },
}

impl FetchError {
    /// Returns whether a retry may succeed by itself.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::Stalled { .. }
                | Self::CutOff { .. }
                | Self::Busy { .. }
        )
    }

    /// Returns the reason for a retry, without the advice at the end of an error.
    pub fn reason(&self) -> String {
        match self {
            Self::Unreachable { host, reason } => format!("Can't reach {host}: {reason}."),
            Self::Stalled { host } => format!("{host} stopped sending."),
            Self::CutOff { host } => format!("The connection to {host} broke off."),
            Self::Busy { host, status, .. } => {
                format!("{host} cannot send the file at the moment (HTTP {status}).")
            }
            error => error.to_string(),
        }
    }

    /// Returns whether the server was reached.
    pub fn has_answered(&self) -> bool {
        !matches!(self, Self::Unreachable { .. })
    }

    /// Returns the pause that the server requests, in units.
    pub fn retry_after(&self) -> Option<u32> {
        match self {
            Self::Busy { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Returns whether the partial file is kept: always, unless the failure shows that it is not part of the file.
    pub fn can_resume(&self) -> bool {
        !matches!(self, Self::WrongContent { .. } | Self::Endless { .. })
    }

    /// Makes the error for a partial file that is no longer at its path.
    pub fn lost(path: &Path) -> Self {
        let path = path.to_owned();
        match path.symlink_metadata() {
            Ok(_) => Self::Replaced { path },
            Err(_) => Self::Lost { path },
        }
    }

    /// Makes the error for a folder that cannot be written or created.
    pub fn writing(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::DiskFull { folder: path }
            }
            _ => Self::File { path, source },
        }
    }

    /// Makes the error for a lock that is not taken.
    pub fn locking(path: &Path, error: LockError) -> Self {
        match error {
            LockError::Held => Self::Held,
            LockError::File(source) => Self::writing(path, source),
        }
    }

    /// Makes an error if the server's size is not that of the request.
    pub fn size(host: &str, found: u64, request: &DownloadRequest) -> Option<Self> {
        let expected = request.bytes.filter(|expected| *expected != found)?;
        Some(Self::Size {
            host: host.to_owned(),
            found,
            expected,
        })
    }
}

fn gigabytes(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
