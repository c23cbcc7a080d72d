//! The GPU check cache: check results, failures and crashes of each GPU, in a file that may be deleted.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use system::private;

use crate::check::GpuCheck;
use crate::gpu_info::Gpu;
use crate::reason::{Fault, WITHOUT_LAYERS};

/// Most models in the cache per device.
const MAX_MODELS: usize = 16;
/// Failures and crashes after which a GPU is disabled.
const MAX_FAILURES: usize = 2;
/// Successful answers after which crashes are forgotten.
const PROBATION: usize = 10;

/// Cache key: a GPU with its driver, the layers above it and the version of the app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuKey {
    pub device: String,
    pub driver: String,
    pub app: String,
    /// The layers that Vulkan's loader disables.
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

/// Reason and bug report of a disabled GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Disabled {
    /// The fault.
    pub fault: Fault,
    /// The text of a bug report.
    pub report: String,
}

/// The record of one GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GpuRecord {
    #[serde(flatten)]
    pub key: GpuKey,
    /// Set once it is disabled.
    pub disabled: Option<Disabled>,
    /// Failures that the driver reported during answers.
    pub failures: Vec<Fault>,
    /// Crashes of the app while the GPU was in use. The GPU need not be the cause: a process may be killed, power may fail.
    #[serde(default)]
    pub crashes: usize,
    /// Successful answers since the last crash.
    #[serde(default)]
    pub good_answers: usize,
    /// Results by model.
    pub models: Vec<ModelRecord>,
}

/// Check and last load of a model on a GPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelRecord {
    /// The model's fingerprint.
    pub model: String,
    /// The CPU of the comparison.
    pub cpu: String,
    pub check: GpuCheck,
    /// Reason for which the last load did not fit on the GPU; a sentence.
    #[serde(default)]
    pub last_load: Option<String>,
}

/// The content of the file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuCache {
    gpus: Vec<GpuRecord>,
}

impl GpuCache {
    /// Reads the content of `file`; empty if it cannot be read.
    pub fn read(file: &Path) -> Self {
        let text = fs::read(file).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Writes the file atomically.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        private::replace(file, &serde_json::to_vec_pretty(self)?)
    }

    pub fn of(&self, key: &GpuKey) -> Option<&GpuRecord> {
        self.gpus.iter().find(|known| known.key == *key)
    }

    /// Returns the entry of a GPU. Entries of the same device with another driver or app are removed.
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
    /// Returns the result for this model and CPU.
    pub fn model(&self, model: &str, cpu: &str) -> Option<&ModelRecord> {
        let mut models = self.models.iter();
        models.find(|it| it.model == model && it.cpu == cpu)
    }

    /// Records why `model` did not fit on the GPU; true if that changes the record.
    pub fn record_load(&mut self, model: &str, last_load: Option<String>) -> bool {
        let mut changed = false;
        for known in self.models.iter_mut().filter(|it| it.model == model) {
            changed |= known.last_load != last_load;
            known.last_load.clone_from(&last_load);
        }
        changed
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

    /// Records a failure; after [`MAX_FAILURES`] failures and crashes the GPU is disabled.
    pub fn record_failure(&mut self, fault: Fault) {
        self.failures.push(fault.clone());
        self.count(fault);
    }

    /// Records a crash of the app; after [`MAX_FAILURES`] failures and crashes the GPU is disabled.
    pub fn record_crash(&mut self) {
        self.crashes += 1;
        self.good_answers = 0;
        self.count(Fault::AppEnded);
    }

    /// Records a successful answer; true if that changes the record. After [`PROBATION`] of them crashes are forgotten.
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
    fn the_cache_file_is_private_and_replaced_atomically() {
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
            // The mode of files of earlier versions.
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("set");
        }
    }
}
