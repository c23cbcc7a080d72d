//! What is known of each GPU, in a file that may be deleted: then all is found out again.

use std::fs;
use std::io;
use std::path::Path;

use chat::private;
use engine::GpuCheck;
use serde::{Deserialize, Serialize};

use super::{Gpu, child};

/// Models that are remembered for each device.
const MODELS: usize = 16;
/// Failures and crashes after which a driver is not used any more.
const FAILURES: usize = 2;
/// Answers that have to go well until a crash is forgotten.
const PROBATION: usize = 10;
const CRASHED: &str = "the app ended while it answered";

/// A GPU with its driver and the layers above it, as a version of this app knows them: of others nothing is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    pub device: String,
    pub driver: String,
    pub app: String,
    /// Which layers Vulkan's loader is told to leave out.
    #[serde(default)]
    pub without_layers: String,
}

impl Key {
    pub fn of(gpu: &Gpu) -> Self {
        Self {
            device: gpu.id.clone(),
            driver: gpu.driver.clone(),
            app: env!("CARGO_PKG_VERSION").to_owned(),
            without_layers: std::env::var(child::WITHOUT_LAYERS.0).unwrap_or_default(),
        }
    }
}

/// Why a GPU is not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Off {
    /// The end of a sentence.
    pub reason: String,
    /// All that is known, to be sent to whoever can mend it.
    pub report: String,
}

/// All that is known of one GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Known {
    #[serde(flatten)]
    pub key: Key,
    pub off: Option<Off>,
    /// What the driver reported while it answered.
    pub failures: Vec<String>,
    /// How often the app ended while it answered. The GPU need not be why: a process may be killed, and power may fail.
    #[serde(default)]
    pub crashes: usize,
    /// Answers that have gone well since the last crash.
    #[serde(default)]
    pub good_answers: usize,
    pub models: Vec<Model>,
}

/// How a GPU did with a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// The model's fingerprint.
    pub model: String,
    /// The CPU that it was measured against.
    pub cpu: String,
    pub check: GpuCheck,
    /// What of it did not go on the GPU when it was last loaded, and why; a sentence.
    #[serde(default)]
    pub without: Option<String>,
}

/// The file's content.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Knowledge {
    gpus: Vec<Known>,
}

impl Knowledge {
    /// What the file holds; nothing where it cannot be read.
    pub fn read(file: &Path) -> Self {
        let text = fs::read(file).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Writes the file whole or not at all.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        if let Some(folder) = file.parent() {
            private::folder(folder)?;
        }
        let part = file.with_extension(format!("part-{}", std::process::id()));
        private::file(&part)?;
        fs::write(&part, serde_json::to_vec_pretty(self)?)?;
        fs::rename(part, file)
    }

    pub fn of(&self, key: &Key) -> Option<&Known> {
        self.gpus.iter().find(|known| known.key == *key)
    }

    /// The entry of a GPU. What was known of it under another driver or app is forgotten.
    pub fn entry(&mut self, key: &Key) -> &mut Known {
        self.gpus
            .retain(|known| known.key.device != key.device || known.key == *key);
        let index = self.gpus.iter().position(|known| known.key == *key);
        let index = index.unwrap_or_else(|| {
            self.gpus.push(Known {
                key: key.clone(),
                off: None,
                failures: Vec::new(),
                crashes: 0,
                good_answers: 0,
                models: Vec::new(),
            });
            self.gpus.len() - 1
        });
        &mut self.gpus[index]
    }

    pub fn forget(&mut self, key: &Key) {
        self.gpus.retain(|known| known.key != *key);
    }
}

impl Known {
    pub fn model(&self, model: &str, cpu: &str) -> Option<&Model> {
        let mut models = self.models.iter();
        models.find(|it| it.model == model && it.cpu == cpu)
    }

    /// Notes what of `model` did not go on the GPU when it was loaded; whether that is news.
    pub fn loaded(&mut self, model: &str, without: Option<String>) -> bool {
        let mut news = false;
        for known in self.models.iter_mut().filter(|it| it.model == model) {
            news |= known.without != without;
            known.without.clone_from(&without);
        }
        news
    }

    pub fn learn(&mut self, model: &str, cpu: &str, check: GpuCheck) {
        self.models.retain(|it| it.model != model || it.cpu != cpu);
        self.models.push(Model {
            model: model.to_owned(),
            cpu: cpu.to_owned(),
            check,
            without: None,
        });
        let most = self.models.len().saturating_sub(MODELS);
        self.models.drain(..most);
    }

    /// Books a failure; after a few of them the GPU is off.
    pub fn failed(&mut self, reason: &str) {
        self.failures.push(reason.to_owned());
        self.count(reason);
    }

    /// Notes that the app ended while it answered; after a few times the GPU is off.
    pub fn crashed(&mut self) {
        self.crashes += 1;
        self.good_answers = 0;
        self.count(CRASHED);
    }

    /// Notes an answer that went well; whether that is news. After some of them crashes are forgotten.
    pub fn answered(&mut self) -> bool {
        if self.crashes == 0 {
            return false;
        }
        self.good_answers += 1;
        if self.good_answers >= PROBATION {
            (self.crashes, self.good_answers) = (0, 0);
        }
        true
    }

    fn count(&mut self, reason: &str) {
        if self.failures.len() + self.crashes < FAILURES || self.off.is_some() {
            return;
        }
        let crashes = std::iter::repeat_n(CRASHED, self.crashes);
        let report: Vec<_> = self
            .failures
            .iter()
            .map(String::as_str)
            .chain(crashes)
            .collect();
        self.off = Some(Off {
            reason: format!("it has failed {FAILURES} times, the last time: {reason}"),
            report: report.join("\n"),
        });
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_file_is_its_users_alone_and_is_replaced_whole() {
        let home = tempfile::tempdir().expect("a folder");
        let folder = home.path().join("data");
        let file = folder.join("gpu.json");
        let key = Key {
            device: "0000:01:00.0".to_owned(),
            driver: "radv 1".to_owned(),
            app: "0.1.0".to_owned(),
            without_layers: String::new(),
        };
        let mut knowledge = Knowledge::default();
        for failure in ["it is lost", "it is lost again"] {
            knowledge.entry(&key).failed(failure);
            knowledge.write(&file).expect("written");
            assert_eq!(Knowledge::read(&file), knowledge);
            let mode = |path: &Path| {
                let metadata = path.metadata().expect("written");
                metadata.permissions().mode() & 0o777
            };
            assert_eq!((mode(&folder), mode(&file)), (0o700, 0o600));
            assert_eq!(fs::read_dir(&folder).expect("listed").count(), 1);
            // As a version before this one left it.
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("set");
        }
    }
}
