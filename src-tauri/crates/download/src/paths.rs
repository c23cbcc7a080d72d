//! Paths of the parts of a download.
//!
//! In the hub's cache, as huggingface_hub lays it out (`file_download.py`): the content under `blobs/`, named after its
//! SHA-256; a relative link to it under `snapshots/COMMIT/`; the commit of a branch in `refs/BRANCH`; and the lock
//! under `.locks/`, which huggingface_hub takes too. From version 1.18 on it keeps its own incomplete files under names
//! that no other process uses; an older one resumes ours, and does not verify it.
//!
//! In a folder of the user's, an incomplete file has the beginning of its SHA-256 in its name, so that it clashes
//! neither with another download nor with a file of the user's.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::disk::free_bytes;
use crate::lock::{FileLock, LockError, is_at, make_folder, shared_file};
use crate::request::{Destination, DownloadRequest, RequestError, is_commit};

/// The paths of one download.
#[derive(Debug, Clone)]
pub struct DownloadPaths {
    /// The content, once it is complete and verified.
    content: PathBuf,
    incomplete: PathBuf,
    lock: PathBuf,
    snapshot: Option<CachedFile>,
}

/// Names of a content in the hub's cache.
#[derive(Debug, Clone)]
struct CachedFile {
    repository: PathBuf,
    commit: String,
    /// The file's path in the repository.
    file: String,
}

impl DownloadPaths {
    /// Returns the paths of a request whose hash and commit are known.
    ///
    /// # Errors
    /// Fails if they are not known, or a name leads out of its folder.
    pub fn of(request: &DownloadRequest) -> Result<Self, RequestError> {
        request.check_names()?;
        let hash = request.hash()?;
        match &request.destination {
            Destination::HubCache {
                hub,
                repository,
                revision,
                file,
            } => {
                let name = format!("models--{}", repository.replace('/', "--"));
                let blobs = hub.join(&name).join("blobs");
                Ok(Self {
                    content: blobs.join(&hash),
                    incomplete: blobs.join(format!("{hash}.incomplete")),
                    lock: hub.join(".locks").join(&name).join(format!("{hash}.lock")),
                    snapshot: Some(CachedFile {
                        repository: hub.join(&name),
                        commit: revision.to_ascii_lowercase(),
                        file: file.clone(),
                    }),
                })
            }
            Destination::Folder { folder, file } => {
                let hidden = format!(".{file}.{}", &hash[..8]);
                Ok(Self {
                    content: folder.join(file),
                    incomplete: folder.join(format!("{hidden}.incomplete")),
                    lock: folder.join(format!("{hidden}.lock")),
                    snapshot: None,
                })
            }
        }
    }

    /// Returns the folder in which the download is written, as a person would name it.
    pub fn folder(&self) -> &Path {
        match &self.snapshot {
            Some(snapshot) => &snapshot.repository,
            None => self.content.parent().unwrap_or(&self.content),
        }
    }

    /// Returns the path by which the complete file is opened.
    pub fn file(&self) -> PathBuf {
        match &self.snapshot {
            Some(snapshot) => snapshot.pointer(),
            None => self.content.clone(),
        }
    }

    /// Returns whether the target may be a file of the user's, which must not be replaced: true in a folder of the
    /// user's, false in the cache, whose files are named after their content.
    pub fn is_of_user(&self) -> bool {
        self.snapshot.is_none()
    }

    /// Returns the existing path of this name, whose content nobody has verified yet. In a folder of the user's it may
    /// be something other than a file.
    pub fn existing(&self) -> Option<PathBuf> {
        let is_there = |path: &PathBuf| match &self.snapshot {
            Some(_) => path.is_file(),
            None => fs::symlink_metadata(path).is_ok(),
        };
        [self.content.clone(), self.file()]
            .into_iter()
            .find(is_there)
    }

    /// Returns the path of the partial file.
    pub fn incomplete(&self) -> &Path {
        &self.incomplete
    }

    /// Takes the lock of this download.
    ///
    /// # Errors
    /// Fails if another process downloads the same file, or a folder cannot be written.
    pub fn take_lock(&self) -> Result<FileLock, LockError> {
        match &self.snapshot {
            Some(_) => FileLock::take(&self.lock),
            None => FileLock::take_temporary(&self.lock),
        }
    }

    /// Opens the partial file for reading and writing, and creates it if missing.
    ///
    /// # Errors
    /// Fails if the folder cannot be written.
    pub fn open_incomplete(&self) -> io::Result<File> {
        if let Some(folder) = self.incomplete.parent() {
            make_folder(folder)?;
        }
        shared_file().truncate(false).open(&self.incomplete)
    }

    /// Returns whether an open file is still the partial file, which another program may have removed or replaced.
    pub fn is_incomplete(&self, file: &File) -> bool {
        is_at(file, &self.incomplete)
    }

    /// Renames the verified partial file to its final name, and returns the path by which it is opened. `branch` is the
    /// requested branch whose commit this is, if any.
    ///
    /// # Errors
    /// Fails if the folder cannot be written, or is the user's and has a file of this name now (`AlreadyExists`).
    pub fn publish(&self, branch: Option<&str>) -> io::Result<PathBuf> {
        match &self.snapshot {
            Some(snapshot) => {
                fs::rename(&self.incomplete, &self.content)?;
                snapshot.point_to(&self.content, IfRefused::Move, symlink)?;
                snapshot.write_ref(branch)?;
            }
            None => rename_to_free(&self.incomplete, &self.content, hard_link)?,
        }
        Ok(self.file())
    }

    /// Creates the names by which the cache leads to an existing content, and returns the path by which it is opened.
    ///
    /// # Errors
    /// Fails if the folder cannot be written, and the path does not lead there already.
    pub fn link(&self, branch: Option<&str>) -> io::Result<PathBuf> {
        let Some(snapshot) = &self.snapshot else {
            // The second name of the file, if the program ended between the two steps of `rename_to_free`.
            let _ = self.remove_incomplete();
            return Ok(self.file());
        };
        if self.content.is_file() {
            snapshot.point_to(&self.content, IfRefused::Copy, symlink)?;
        }
        // A cache that cannot be written lacks the note of the branch, but has the whole file.
        let _ = snapshot.write_ref(branch);
        Ok(self.file())
    }

    /// Removes the partial file.
    ///
    /// # Errors
    /// Fails if the folder cannot be written.
    pub fn remove_incomplete(&self) -> io::Result<()> {
        match fs::remove_file(&self.incomplete) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Fallbacks for a content to which no link can be made, as in huggingface_hub.
#[derive(Debug, Clone, Copy)]
enum IfRefused {
    /// The content is new: nothing else refers to it.
    Move,
    /// A pointer of another commit may refer to it.
    Copy,
}

impl CachedFile {
    fn pointer(&self) -> PathBuf {
        let folder = self.repository.join("snapshots").join(&self.commit);
        folder.join(&self.file)
    }

    /// Returns the relative path from the pointer to a content. Windows does not resolve `/` in a link.
    fn link_target(&self, content: &Path) -> PathBuf {
        let above = self.file.split('/').count() + 1;
        let mut target = PathBuf::from_iter(std::iter::repeat_n("..", above));
        target.push("blobs");
        target.push(content.file_name().unwrap_or_default());
        target
    }

    /// Creates a relative link to the content; if links are not allowed, the content itself goes here.
    fn point_to(
        &self,
        content: &Path,
        if_refused: IfRefused,
        symlink: impl Fn(&Path, &Path) -> io::Result<()>,
    ) -> io::Result<()> {
        let pointer = self.pointer();
        if let Some(folder) = pointer.parent() {
            make_folder(folder)?;
        }
        let target = self.link_target(content);
        if fs::read_link(&pointer).is_ok_and(|found| found.as_os_str() == target.as_os_str()) {
            return Ok(());
        }
        match fs::remove_file(&pointer) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        match (symlink(&target, &pointer), if_refused) {
            (Err(error), IfRefused::Move) if is_link_refused(&error) => {
                fs::rename(content, &pointer)
            }
            (Err(error), IfRefused::Copy) if is_link_refused(&error) => copy(content, &pointer),
            (linked, _) => linked,
        }
    }

    /// Notes the commit of a branch. A file that was requested by its commit is noted as `main` if there is no such
    /// note: offline, Hugging Face's tools find a file only by that.
    fn write_ref(&self, branch: Option<&str>) -> io::Result<()> {
        let path = self.repository.join("refs").join(branch.unwrap_or("main"));
        let is_current = match fs::read_to_string(&path) {
            Ok(found) if branch.is_none() => is_commit(&found),
            Ok(found) => found == self.commit,
            Err(_) => false,
        };
        if is_current {
            return Ok(());
        }
        if let Some(folder) = path.parent() {
            make_folder(folder)?;
        }
        // Outside `refs/`, where every file is a branch.
        let name = format!(".{}.{}.tmp", self.commit, std::process::id());
        let temporary = self.repository.join(name);
        let mut file = shared_file().truncate(true).open(&temporary)?;
        file.write_all(self.commit.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, &path)
    }
}

/// Renames a file to a name that must be free: `rename` alone would replace a file that has appeared there.
fn rename_to_free(
    from: &Path,
    to: &Path,
    hard_link: impl Fn(&Path, &Path) -> io::Result<()>,
) -> io::Result<()> {
    match hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        // The file system may have no hard links.
        Err(_) if fs::symlink_metadata(to).is_err() => fs::rename(from, to),
        Err(_) => Err(io::ErrorKind::AlreadyExists.into()),
    }
}

/// Copies a content if the disk has room for it; otherwise nothing is left of the copy.
fn copy(content: &Path, to: &Path) -> io::Result<()> {
    if free_bytes(to)? < fs::metadata(content)?.len() {
        return Err(io::ErrorKind::StorageFull.into());
    }
    let part = to.with_added_extension("incomplete");
    let copied = fs::copy(content, &part).and_then(|_| fs::rename(&part, to));
    copied.inspect_err(|_| {
        let _ = fs::remove_file(&part);
    })
}

/// Returns whether symbolic links cannot be created there, or not by this user.
fn is_link_refused(error: &io::Error) -> bool {
    // Windows: ERROR_INVALID_FUNCTION, ERROR_NOT_SUPPORTED, ERROR_PRIVILEGE_NOT_HELD.
    let is_refused_by_windows =
        cfg!(windows) && matches!(error.raw_os_error(), Some(1 | 50 | 1314));
    let kind = error.kind();
    is_refused_by_windows
        || matches!(
            kind,
            io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported
        )
}

/// Returns the bytes of a partial file, from which a resume begins; `None` if there is none.
///
/// # Errors
/// Fails if that cannot be determined: the file cannot be queried, or its folder is missing, as on a drive that is not
/// connected.
pub fn incomplete_bytes(request: &DownloadRequest) -> io::Result<Option<u64>> {
    let Ok(paths) = DownloadPaths::of(request) else {
        return Ok(None);
    };
    let (Destination::HubCache { hub: root, .. } | Destination::Folder { folder: root, .. }) =
        &request.destination;
    match fs::metadata(paths.incomplete) {
        Ok(metadata) => Ok(Some(metadata.len()).filter(|bytes| *bytes > 0)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && root.is_dir() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes the partial file of a download.
///
/// # Errors
/// Fails if it is being downloaded (`ResourceBusy`), or the folder cannot be written.
pub fn drop_incomplete(request: &DownloadRequest) -> io::Result<()> {
    let Ok(paths) = DownloadPaths::of(request) else {
        // Nothing was written of a file whose hash is not known.
        return Ok(());
    };
    if !paths.incomplete.exists() {
        return Ok(());
    }
    match paths.take_lock() {
        Ok(_lock) => paths.remove_incomplete(),
        Err(LockError::Held) => Err(io::Error::new(io::ErrorKind::ResourceBusy, LockError::Held)),
        Err(LockError::File(error)) => Err(error),
    }
}

fn hard_link(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to)
}

#[cfg(unix)]
fn symlink(target: &Path, link: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(target, link)
}

#[cfg(windows)]
fn symlink(target: &Path, link: &Path) -> io::Result<()> {
    std::os::windows::fs::symlink_file(target, link)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn request(hub: &Path, file: &str) -> DownloadRequest {
        DownloadRequest {
            url: "https://example.com/x".to_owned(),
            destination: Destination::HubCache {
                hub: hub.to_owned(),
                repository: "owner/name".to_owned(),
                revision: COMMIT.to_owned(),
                file: file.to_owned(),
            },
            bytes: None,
            sha256: Some("AB".repeat(32)),
        }
    }

    #[test]
    fn a_file_in_a_folder_of_its_repository_is_linked_from_there() {
        let hub = tempfile::tempdir().expect("a folder");
        let request = request(hub.path(), "a/b/x.gguf");
        let paths = DownloadPaths::of(&request).expect("all is known");
        let mut file = paths.open_incomplete().expect("made");
        file.write_all(b"content").expect("written");
        assert_eq!(incomplete_bytes(&request).expect("known"), Some(7));
        drop(file);
        let pointer = paths.publish(Some("main")).expect("published");
        assert_eq!(fs::read(&pointer).expect("it leads there"), b"content");
        #[cfg(unix)]
        {
            let target = Path::new("../../../../blobs").join("ab".repeat(32));
            assert_eq!(fs::read_link(&pointer).expect("a link"), target);
        }
        assert_eq!(incomplete_bytes(&request).expect("known"), None);
    }

    #[test]
    fn a_link_is_of_the_systems_separators() {
        let hub = tempfile::tempdir().expect("a folder");
        let paths = DownloadPaths::of(&request(hub.path(), "a/b/x.gguf")).expect("all is known");
        let target = paths
            .snapshot
            .as_ref()
            .map(|it| it.link_target(&paths.content));
        let hash = "ab".repeat(32);
        let expected = ["..", "..", "..", "..", "blobs", &hash].join(std::path::MAIN_SEPARATOR_STR);
        assert_eq!(target.expect("in the cache").to_str(), Some(&*expected));
    }

    #[test]
    fn where_links_are_not_allowed_the_content_itself_is_there() {
        let hub = tempfile::tempdir().expect("a folder");
        let paths = DownloadPaths::of(&request(hub.path(), "x.gguf")).expect("all is known");
        let Some(snapshot) = &paths.snapshot else {
            panic!("it is in the cache");
        };
        paths
            .open_incomplete()
            .expect("made")
            .write_all(b"content")
            .expect("written");
        fs::rename(&paths.incomplete, &paths.content).expect("renamed");
        let refuse = |kind: io::ErrorKind| move |_: &Path, _: &Path| Err(kind.into());
        let full = refuse(io::ErrorKind::StorageFull);
        let failed = snapshot.point_to(&paths.content, IfRefused::Move, full);
        assert_eq!(
            failed.expect_err("another failure").kind(),
            io::ErrorKind::StorageFull
        );
        assert!(paths.content.is_file() && !paths.file().exists());
        // A content that was there before stays: something else may refer to it.
        let refused = refuse(io::ErrorKind::PermissionDenied);
        snapshot
            .point_to(&paths.content, IfRefused::Copy, refused)
            .expect("copied");
        assert_eq!(fs::read(paths.file()).expect("there"), b"content");
        assert_eq!(fs::read(&paths.content).expect("there"), b"content");
        let refused = refuse(io::ErrorKind::Unsupported);
        snapshot
            .point_to(&paths.content, IfRefused::Move, refused)
            .expect("moved");
        assert_eq!(paths.existing(), Some(paths.file()));
        assert_eq!(fs::read(paths.file()).expect("there"), b"content");
        // A later link leaves a content outside `blobs/` where it is.
        paths.link(None).expect("nothing to link");
        assert_eq!(fs::read(paths.file()).expect("there"), b"content");
    }

    #[test]
    fn a_copy_for_which_the_disk_has_no_room_is_not_begun() {
        let hub = tempfile::tempdir().expect("a folder");
        let paths = DownloadPaths::of(&request(hub.path(), "x.gguf")).expect("all is known");
        let Some(snapshot) = &paths.snapshot else {
            panic!("it is in the cache");
        };
        fs::create_dir_all(hub.path().join("models--owner--name/blobs")).expect("made");
        let large = File::create(&paths.content).expect("made");
        if large.set_len(1 << 43).is_err() {
            return;
        }
        let refused = |_: &Path, _: &Path| Err(io::ErrorKind::PermissionDenied.into());
        let full = snapshot.point_to(&paths.content, IfRefused::Copy, refused);
        let kind = full.expect_err("eight terabytes").kind();
        assert_eq!(kind, io::ErrorKind::StorageFull);
        let folder = paths.file().parent().map(fs::read_dir).expect("a folder");
        assert_eq!(folder.expect("made").count(), 0);
    }

    #[test]
    fn a_file_that_is_there_is_not_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let refuse = |_: &Path, _: &Path| Err(io::ErrorKind::PermissionDenied.into());
        for has_hard_links in [true, false] {
            let rename = || match has_hard_links {
                true => rename_to_free(&from, &to, hard_link),
                false => rename_to_free(&from, &to, refuse),
            };
            fs::write(&from, b"content").expect("written");
            fs::write(&to, b"mine").expect("written");
            let taken = rename().expect_err("the name is taken");
            assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
            assert_eq!(fs::read(&to).expect("there"), b"mine");
            fs::remove_file(&to).expect("removed");
            rename().expect("the name is free");
            assert_eq!(fs::read(&to).expect("there"), b"content");
            assert!(!from.exists());
        }
    }

    #[test]
    fn in_a_folder_that_is_not_there_nobody_knows_what_is() {
        let home = tempfile::tempdir().expect("a folder");
        let hub = home.path().join("drive/hub");
        let request = request(&hub, "x.gguf");
        assert!(incomplete_bytes(&request).is_err());
        fs::create_dir_all(&hub).expect("made");
        assert_eq!(incomplete_bytes(&request).expect("known"), None);
    }

    #[test]
    fn of_a_file_without_hash_or_commit_nothing_is_there() {
        let hub = tempfile::tempdir().expect("a folder");
        let mut unknown = request(hub.path(), "x.gguf");
        unknown.sha256 = None;
        assert_eq!(incomplete_bytes(&unknown).expect("known"), None);
        drop_incomplete(&unknown).expect("nothing to drop");
        let mut branch = request(hub.path(), "x.gguf");
        if let Destination::HubCache { revision, .. } = &mut branch.destination {
            *revision = "main".to_owned();
        }
        assert_eq!(incomplete_bytes(&branch).expect("known"), None);
    }
}
