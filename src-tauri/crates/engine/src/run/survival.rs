//! A model on a GPU that goes on on the CPU, in the middle of an answer, when the GPU fails.

use std::sync::atomic::AtomicBool;

use crate::model::backend::BackendError;
use crate::model::forward::{Choose, Evaluate, Pass, Profile, Want, check_ids};
use crate::run::sampler::Sampling;

/// Loads the model once more, on the CPU.
pub type Reload = Box<dyn FnMut() -> Result<Box<dyn Evaluate>, String> + Send>;

/// A model that survives its device.
pub struct Surviving {
    model: Box<dyn Evaluate>,
    reload: Reload,
    vocab: usize,
    /// What was read, as far as its tokens are known here.
    tokens: Vec<u32>,
    /// How many of these the CPU's cache holds, and why the CPU was needed.
    fallen: Option<(usize, String)>,
}

impl Surviving {
    /// `model` on a GPU, with so many tokens in its vocabulary, and how to load it on the CPU.
    pub fn new(model: Box<dyn Evaluate>, vocab: usize, reload: Reload) -> Surviving {
        Surviving {
            model,
            reload,
            vocab,
            tokens: Vec::new(),
            fallen: None,
        }
    }

    /// Goes over to the CPU. The device's memory is given back first.
    fn fall(&mut self, error: BackendError) -> Result<(), BackendError> {
        if self.fallen.is_some() {
            return Err(error);
        }
        tracing::warn!(%error, "the GPU failed; going on on the CPU");
        // Host memory may hold a part of the model, and the GPU's may be the host's.
        self.model = Box::new(Gone);
        self.model = (self.reload)()
            .map_err(|reason| BackendError::Failed(format!("{error}; then {reason}")))?;
        self.fallen = Some((0, error.to_string()));
        Ok(())
    }

    /// Reads on the CPU what the GPU had read.
    fn catch_up(&mut self, cancel: &AtomicBool) -> Result<Pass, BackendError> {
        let Some((held, _)) = &mut self.fallen else {
            return Ok(Pass::Complete);
        };
        while *held < self.tokens.len() {
            let rest = &self.tokens[*held..];
            let now = &rest[..rest.len().min(self.model.chunk())];
            let pass = self
                .model
                .append(now, Want::Nothing, cancel, &mut Vec::new())?;
            if pass == Pass::Cancelled {
                return Ok(pass);
            }
            *held += now.len();
        }
        Ok(Pass::Complete)
    }
}

/// Stands where no model could be loaded.
struct Gone;

impl Evaluate for Gone {
    fn append(
        &mut self,
        _: &[u32],
        _: Want,
        _: &AtomicBool,
        _: &mut Vec<f32>,
    ) -> Result<Pass, BackendError> {
        Err(BackendError::Failed("no model is loaded".to_owned()))
    }

    fn truncate(&mut self, _: usize) {}

    fn chunk(&self) -> usize {
        1
    }

    fn kv_bytes(&self) -> usize {
        0
    }
}

impl Evaluate for Surviving {
    fn append(
        &mut self,
        ids: &[u32],
        want: Want,
        cancel: &AtomicBool,
        logits: &mut Vec<f32>,
    ) -> Result<Pass, BackendError> {
        check_ids(ids, usize::MAX, self.vocab)?;
        if self.fallen.is_none() {
            match self.model.append(ids, want, cancel, logits) {
                Ok(Pass::Complete) => {
                    self.tokens.extend_from_slice(ids);
                    return Ok(Pass::Complete);
                }
                Ok(Pass::Cancelled) => return Ok(Pass::Cancelled),
                Err(error) => self.fall(error)?,
            }
        }
        if self.catch_up(cancel)? == Pass::Cancelled {
            return Ok(Pass::Cancelled);
        }
        logits.clear();
        // The CPU may take fewer tokens at once.
        let chunk = self.model.chunk();
        let mut part = Vec::new();
        for (index, now) in ids.chunks(chunk).enumerate() {
            let want = match want {
                Want::Last if (index + 1) * chunk < ids.len() => Want::Nothing,
                want => want,
            };
            if self.model.append(now, want, cancel, &mut part)? == Pass::Cancelled {
                self.model.truncate(self.tokens.len());
                return Ok(Pass::Cancelled);
            }
            if want != Want::Nothing {
                logits.append(&mut part);
            }
        }
        self.tokens.extend_from_slice(ids);
        if let Some((held, _)) = &mut self.fallen {
            *held = self.tokens.len();
        }
        Ok(Pass::Complete)
    }

    fn truncate(&mut self, len: usize) {
        self.tokens.truncate(len);
        if let Some((held, _)) = &mut self.fallen {
            *held = (*held).min(len);
        }
        self.model.truncate(len);
    }

    fn chunk(&self) -> usize {
        self.model.chunk()
    }

    fn few(&self) -> usize {
        self.model.few()
    }

    fn kv_bytes(&self) -> usize {
        self.model.kv_bytes()
    }

    fn chooser(&mut self) -> Option<&mut dyn Choose> {
        self.model.chooser().is_some().then_some(self)
    }

    fn profile(&mut self) -> Result<Option<Profile>, BackendError> {
        self.model.profile()
    }

    fn failed(&self) -> Option<&str> {
        self.fallen.as_ref().map(|(_, reason)| reason.as_str())
    }
}

impl Choose for Surviving {
    fn sample(&mut self, sampling: &Sampling, suppressed: &[u32]) -> Result<bool, BackendError> {
        let Some(chooser) = self.model.chooser() else {
            return Ok(false);
        };
        match chooser.sample(sampling, suppressed) {
            Ok(can) => Ok(can),
            Err(error) => self.fall(error).map(|()| false),
        }
    }

    fn follow(&mut self, id: Option<u32>, noise: f64) -> Result<(), BackendError> {
        // A pass over a token that is not known yet is booked when it is.
        self.tokens.extend(id);
        let Some(chooser) = self.model.chooser() else {
            return Ok(());
        };
        match chooser.follow(id, noise) {
            Ok(()) => Ok(()),
            Err(error) => self.fall(error),
        }
    }

    fn ahead(&mut self) -> usize {
        self.model.chooser().map_or(0, |chooser| chooser.ahead())
    }

    fn chosen(&mut self) -> Result<Option<u32>, BackendError> {
        let Some(chooser) = self.model.chooser() else {
            // The CPU does not choose: the host does, from its logits.
            return Ok(None);
        };
        match chooser.chosen() {
            Ok(Some(next)) => {
                if chooser.ahead() > 0 {
                    self.tokens.push(next);
                }
                Ok(Some(next))
            }
            Ok(None) => Ok(None),
            Err(error) => self.fall(error).map(|()| None),
        }
    }
}
