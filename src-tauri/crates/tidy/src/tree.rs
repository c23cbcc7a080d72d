use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders of build output, installed packages and downloads.
const SKIPPED: [&str; 9] = [
    ".git",
    "target",
    "node_modules",
    "dist",
    "dist-fake",
    "dist-export",
    "gen",
    "out",
    "__pycache__",
];

/// One file of the repository; `text` is empty if it is not UTF-8.
#[derive(Debug, Clone)]
pub struct File {
    /// Path from the top folder, with `/`.
    pub path: String,
    /// The contents.
    pub text: String,
}

impl File {
    /// Returns the last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Returns true if the name ends in one of these, given without the dot.
    pub fn has_extension(&self, extensions: &[&str]) -> bool {
        self.name()
            .rsplit_once('.')
            .is_some_and(|(_, found)| extensions.contains(&found))
    }

    /// Returns the path that `target` leads to, relative to this file's folder.
    pub fn resolve(&self, target: &str) -> String {
        let mut parts: Vec<&str> = self.path.split('/').collect();
        parts.pop();
        for part in target.split('/') {
            match part {
                "." => {}
                ".." => {
                    parts.pop();
                }
                name => parts.push(name),
            }
        }
        parts.join("/")
    }
}

/// The files that rules look at.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// The files, sorted by path.
    pub files: Vec<File>,
}

impl Tree {
    /// Reads the repository that contains this crate.
    pub fn of_repository() -> io::Result<Self> {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let mut files = Vec::new();
        collect(&top, &PathBuf::new(), &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self { files })
    }

    /// Makes a tree of given files, to show that a rule can fail.
    pub fn sample(files: &[(&str, &str)]) -> Self {
        let file = |&(path, text): &(&str, &str)| File {
            path: path.into(),
            text: text.into(),
        };
        Self {
            files: files.iter().map(file).collect(),
        }
    }

    /// Returns the file at this path.
    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Returns the Rust sources, with the folder of the package that each belongs to.
    pub fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| file.has_extension(&["rs"]))
    }

    /// Returns the sources of the UI, without its tests.
    pub fn ui(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|file| {
            let is_page = file.path.starts_with("ui/src/") || file.path == "ui/index.html";
            is_page && !file.path.ends_with(".test.ts")
        })
    }
}

fn collect(top: &Path, within: &Path, files: &mut Vec<File>) -> io::Result<()> {
    for entry in fs::read_dir(top.join(within))? {
        let entry = entry?;
        let name = entry.file_name();
        let path = within.join(&name);
        if SKIPPED.iter().any(|skipped| name == *skipped) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect(top, &path, files)?;
        } else {
            let text = String::from_utf8(fs::read(entry.path())?).unwrap_or_default();
            files.push(File {
                path: path.to_string_lossy().replace('\\', "/"),
                text,
            });
        }
    }
    Ok(())
}
