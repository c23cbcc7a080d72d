//! The GPU check cache: what was found out about each GPU, in a file that may be deleted.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use system::private;

use crate::check::GpuCheck;
use crate::gpu_info::Gpu;
use crate::reason::{Fault, WITHOUT_LAYERS};

/// Models in the cache for each device.
const MAX_MODELS: usize = 16;
/// Failures and crashes after which a driver is not used any more.
const MAX_FAILURES: usize = 2;
/// Answers that have to go well until a crash is forgotten.
const PROBATION: usize = 10;

/// A GPU with its driver, the layers above it and the version of the app: what was found of one says nothing of another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuKey {
    pub device: String,
    pub driver: String,
    pub app: String,
    /// Which layers Vulkan's loader is told to leave out.
    #[serde(default)]
    pub without_layers: String,
}

impl GpuKey {
    pub fn of(gpu: &Gpu) -> Self {
        Self {
            device: gpu.id.clone(),
            driver: gpu.driver.clone(),
            app: env!("CARGO_PKG_VERSION").to_owned(),
            without_layers: std::env::var(WITHOUT_LAYERS.0).unwrap_or_default(),
        }
    }
}

/// Why a GPU is not used any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Disabled {
    /// What is wrong with it.
    pub fault: Fault,
    /// Everything that was found, for a bug report.
    pub report: String,
}

/// What was found out about one GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuRecord {
    #[serde(flatten)]
    pub key: GpuKey,
    /// Set where it is not used any more.
    pub disabled: Option<Disabled>,
    /// What the driver reported while it answered.
    pub failures: Vec<Fault>,
    /// How often the app ended while it answered. The GPU need not be why: a process may be killed, and power may fail.
    #[serde(default)]
    pub crashes: usize,
    /// Answers that have gone well since the last crash.
    #[serde(default)]
    pub good_answers: usize,
    /// The models that it was checked with.
    pub models: Vec<ModelRecord>,
}

/// How a GPU did with a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelRecord {
    /// The model's fingerprint.
    pub model: String,
    /// The CPU that it was measured against.
    pub cpu: String,
    pub check: GpuCheck,
    /// Why it did not fit on the GPU when it was last loaded; a sentence.
    #[serde(default)]
    pub last_load: Option<String>,
}

/// The file's content.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuCache {
    gpus: Vec<GpuRecord>,
}

impl GpuCache {
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

    pub fn of(&self, key: &GpuKey) -> Option<&GpuRecord> {
        self.gpus.iter().find(|known| known.key == *key)
    }

    /// The entry of a GPU. What was known of it under another driver or app is forgotten.
    pub fn entry(&mut self, key: &GpuKey) -> &mut GpuRecord {
        self.gpus
            .retain(|known| known.key.device != key.device || known.key == *key);
        let index = self.gpus.iter().position(|known| known.key == *key);
        let index = index.unwrap_or_else(|| {
            self.gpus.push(GpuRecord {
                key: key.clone(),
                disabled: None,
                failures: Vec::new(),
                crashes: 0,
                good_answers: 0,
                models: Vec::new(),
            });
            self.gpus.len() - 1
        });
        &mut self.gpus[index]
    }

    pub fn forget(&mut self, key: &GpuKey) {
        self.gpus.retain(|known| known.key != *key);
    }
}

impl GpuRecord {
    /// What was found with this model and CPU.
    pub fn model(&self, model: &str, cpu: &str) -> Option<&ModelRecord> {
        let mut models = self.models.iter();
        models.find(|it| it.model == model && it.cpu == cpu)
    }

    /// Records why `model` did not fit on the GPU when it was loaded; true where that is a change.
    pub fn record_load(&mut self, model: &str, last_load: Option<String>) -> bool {
        let mut news = false;
        for known in self.models.iter_mut().filter(|it| it.model == model) {
            news |= known.last_load != last_load;
            known.last_load.clone_from(&last_load);
        }
        news
    }

    /// Records a check.
    pub fn record_check(&mut self, model: &str, cpu: &str, check: GpuCheck) {
        self.models.retain(|it| it.model != model || it.cpu != cpu);
        self.models.push(ModelRecord {
            model: model.to_owned(),
            cpu: cpu.to_owned(),
            check,
            last_load: None,
        });
        let most = self.models.len().saturating_sub(MAX_MODELS);
        self.models.drain(..most);
    }

    /// Records a failure; after a few of them the GPU is disabled.
    pub fn record_failure(&mut self, fault: Fault) {
        self.failures.push(fault.clone());
        self.count(fault);
    }

    /// Records that the app ended while it answered; after a few times the GPU is disabled.
    pub fn record_crash(&mut self) {
        self.crashes += 1;
        self.good_answers = 0;
        self.count(Fault::AppEnded);
    }

    /// Records an answer that went well; true where that is a change. After some of them crashes are forgotten.
    pub fn record_answer(&mut self) -> bool {
        if self.crashes == 0 {
            return false;
        }
        self.good_answers += 1;
        if self.good_answers >= PROBATION {
            (self.crashes, self.good_answers) = (0, 0);
        }
        true
    }

    fn count(&mut self, last: Fault) {
        if self.failures.len() + self.crashes < MAX_FAILURES || self.disabled.is_some() {
            return;
        }
        let crashes = std::iter::repeat_n(&Fault::AppEnded, self.crashes);
        let failures = self.failures.iter().chain(crashes);
        let report: Vec<_> = failures.map(Fault::to_string).collect();
        self.disabled = Some(Disabled {
            fault: Fault::Repeated {
                times: MAX_FAILURES,
                last: Box::new(last),
            },
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
        let key = GpuKey {
            device: "0000:01:00.0".to_owned(),
            driver: "radv 1".to_owned(),
            app: "0.1.0".to_owned(),
            without_layers: String::new(),
        };
        let mut cache = GpuCache::default();
        for failure in ["it is lost", "it is lost again"] {
            cache
                .entry(&key)
                .record_failure(Fault::Driver(failure.to_owned()));
            cache.write(&file).expect("written");
            assert_eq!(GpuCache::read(&file), cache);
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
