//! What the hub says of a file before it is downloaded: its commit, size and SHA-256.

use download::{Destination, DownloadRequest, is_commit};

use crate::client::{Client, Question};
use crate::error::FetchError;
use crate::headers::{Linked, header};
use crate::transfer::check_status;

/// A request of which everything is known.
pub struct Resolved {
    pub request: DownloadRequest,
    /// The branch that was asked for, if it was one.
    pub branch: Option<String>,
}

/// Whether the server has to be asked first.
pub fn is_needed(request: &DownloadRequest) -> bool {
    let is_branch = match &request.destination {
        Destination::HubCache { revision, .. } => !is_commit(revision),
        Destination::Folder { .. } => false,
    };
    request.sha256.is_none() || is_branch
}

/// Asks the server for what the request lacks.
///
/// # Errors
/// Where it does not say, or says other than the request.
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

/// The address of a hub's file at a commit, in place of that of a branch, which moves.
fn at_commit(url: &str, commit: &str) -> Option<String> {
    let (repository, rest) = url.split_once("/resolve/")?;
    let (_, file) = rest.split_once('/')?;
    Some(format!("{repository}/resolve/{commit}/{file}"))
}
