//! Metadata of a file from the hub before the download: its commit, size and SHA-256.

use download::{Destination, DownloadRequest, is_commit};

use crate::client::{Client, Question};
use crate::error::FetchError;
use crate::headers::{Linked, header};
use crate::transfer::check_status;

/// A complete request.
pub struct Resolved {
    pub request: DownloadRequest,
    /// The requested branch, if it was one.
    pub branch: Option<String>,
}

/// Returns whether the server must be queried first.
pub fn is_needed(request: &DownloadRequest) -> bool {
    let is_branch = match &request.destination {
        Destination::HubCache { revision, .. } => !is_commit(revision),
        Destination::Folder { .. } => false,
    };
    request.sha256.is_none() || is_branch
}

/// Completes the request by a query to the server.
///
/// # Errors
/// Fails if the server does not answer it, or contradicts the request.
pub fn resolve(client: &Client, mut request: DownloadRequest) -> Result<Resolved, FetchError> {
    let url = client.address(&request.url)?;
    let question = Question {
        request: &request,
        headers_only: true,
        from: None,
    };
    let answer = client.ask(&url, &question)?;
    let host = answer.host();
    let headers = answer.response.headers();
    let linked = Linked::of(headers);
    if linked.sha256.is_none() {
        check_status(client, &answer)?;
    }
    request.bytes = request.bytes.or(linked.bytes);
    request.sha256 = request.sha256.or(linked.sha256);
    if request.sha256.is_none() {
        return Err(FetchError::NoHash { host });
    }
    let commit = header(headers, "x-repo-commit").filter(|it| is_commit(it));
    if let Some(commit) = commit.filter(|_| client.is_hub(&url)) {
        request.url = at_commit(&request.url, commit).unwrap_or(request.url);
    }
    let mut branch = None;
    if let Destination::HubCache { revision, .. } = &mut request.destination
        && !is_commit(revision)
    {
        let commit = commit.ok_or(FetchError::NoCommit { host })?;
        branch = Some(std::mem::replace(revision, commit.to_owned()));
    }
    Ok(Resolved { request, branch })
}

/// Replaces the branch in the address of a hub's file, which moves, with a commit.
fn at_commit(url: &str, commit: &str) -> Option<String> {
    let (repository, rest) = url.split_once("/resolve/")?;
    let (_, file) = rest.split_once('/')?;
    Some(format!("{repository}/resolve/{commit}/{file}"))
}
