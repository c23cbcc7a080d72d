//! A GPU with a fault, for tests.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use gpu::{Allowed, CoopMatrices, DeviceLimits, Dispatch, Executor, GpuError, Kernel, Wgpu};

use crate::or_skip;

/// The device of a test, which is skipped without one.
pub fn device() -> Option<Wgpu> {
    or_skip(any_device())
}

/// One device for all tests, so that its kernels are compiled once; `None` without a driver.
pub fn any_device() -> Option<Wgpu> {
    const ALLOWED: Allowed = Allowed {
        software: true,
        matrices: true,
    };
    static DEVICE: LazyLock<Option<Wgpu>> = LazyLock::new(|| Wgpu::open(None, ALLOWED).ok());
    DEVICE.clone()
}

/// The fault of a device.
#[derive(Clone, Debug)]
pub enum InjectedFault {
    /// It fails.
    Fails(GpuError),
    /// Its results are NaN.
    Nan,
    /// It skips the last dispatch of every submit without an error.
    SkipsWork,
    /// Its memory size in bytes.
    Small(u64),
    /// It reports cooperative matrices that it does not have.
    NoMatrices,
    /// Products with cooperative matrices skip the end of every row.
    WrongMatrices,
}

/// A device that works until its fault occurs. Clones are the same device.
#[derive(Clone)]
pub struct Faulty {
    exec: Wgpu,
    fault: InjectedFault,
    submits_left: Arc<AtomicUsize>,
    taken: Arc<AtomicU64>,
}

impl Faulty {
    /// The fault occurs at the n-th submit.
    pub fn new(exec: Wgpu, submits_left: usize, fault: InjectedFault) -> Faulty {
        Faulty {
            exec,
            fault,
            submits_left: Arc::new(AtomicUsize::new(submits_left)),
            taken: Arc::default(),
        }
    }

    /// The fault occurs at the n-th submit from now on.
    pub fn show_after(&self, submits: usize) {
        self.submits_left.store(submits, Ordering::Relaxed);
    }

    /// Bytes of its memory in use.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    fn shows(&self) -> bool {
        self.submits_left.load(Ordering::Relaxed) == 0
    }
}

/// Memory that is given back when the last of its clones goes.
#[derive(Clone)]
pub struct Taken {
    buffer: <Wgpu as Executor>::Buffer,
    _share: Arc<Share>,
}

struct Share {
    bytes: u64,
    of: Arc<AtomicU64>,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Executor for Faulty {
    type Buffer = Taken;
    type BoundKernel = <Wgpu as Executor>::BoundKernel;
    type Submission = <Wgpu as Executor>::Submission;

    fn limits(&self) -> DeviceLimits {
        let claimed = CoopMatrices {
            edge: 16,
            subgroup: 32,
            paired: true,
        };
        let claims = matches!(
            self.fault,
            InjectedFault::NoMatrices | InjectedFault::WrongMatrices
        );
        DeviceLimits {
            matrices: claims.then_some(claimed),
            ..self.exec.limits()
        }
    }

    fn buffer(&mut self, name: &str, bytes: u64) -> Result<Taken, GpuError> {
        let taken = self.taken.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let share = Share {
            bytes,
            of: Arc::clone(&self.taken),
        };
        if let InjectedFault::Small(most) = self.fault
            && taken > most
        {
            return Err(GpuError::OutOfMemory(format!("{bytes} bytes for {name}")));
        }
        Ok(Taken {
            buffer: self.exec.buffer(name, bytes)?,
            _share: Arc::new(share),
        })
    }

    fn write(&mut self, to: &Taken, at: u64, bytes: &[u8]) -> Result<(), GpuError> {
        self.exec.write(&to.buffer, at, bytes)
    }

    fn copy(&mut self, from: &Taken, to: &Taken, bytes: u64) -> Result<(), GpuError> {
        self.exec.copy(&from.buffer, &to.buffer, bytes)
    }

    fn bind(&mut self, kernel: &Kernel, buffers: &[&Taken]) -> Result<Self::BoundKernel, GpuError> {
        let mut kernel = kernel.clone();
        if kernel.file == "mat_mul_coop" {
            if !matches!(self.fault, InjectedFault::WrongMatrices) {
                return Err(GpuError::Refused("no cooperative matrices".to_owned()));
            }
            // A kernel that reads halves as floats, and writes a part of the result.
            kernel.file = "mat_mul";
            kernel.flags.retain(|flag| *flag != "x_HALF");
            for (name, value) in &mut kernel.constants {
                match *name {
                    "THREADS" => "128u".clone_into(value),
                    "PAIRS" => "32u".clone_into(value),
                    _ => {}
                }
            }
        }
        let buffers: Vec<_> = buffers.iter().map(|it| &it.buffer).collect();
        self.exec.bind(&kernel, &buffers)
    }

    fn submit(
        &mut self,
        dispatches: &[Dispatch<'_, Self::BoundKernel>],
        reading: Option<(&Taken, u64)>,
    ) -> Result<Self::Submission, GpuError> {
        let left = self.submits_left.load(Ordering::Relaxed);
        self.submits_left
            .store(left.saturating_sub(1), Ordering::Relaxed);
        let done = match &self.fault {
            InjectedFault::Fails(failure) if self.shows() => return Err(failure.clone()),
            InjectedFault::SkipsWork if self.shows() => dispatches.len().saturating_sub(1),
            _ => dispatches.len(),
        };
        let reading = reading.map(|(buffer, bytes)| (&buffer.buffer, bytes));
        self.exec.submit(&dispatches[..done], reading)
    }

    fn timed(
        &mut self,
        dispatches: &[Dispatch<'_, Self::BoundKernel>],
    ) -> Result<Option<Vec<f64>>, GpuError> {
        self.exec.timed(dispatches)
    }

    fn wait(&mut self, submission: Self::Submission) -> Result<Vec<u8>, GpuError> {
        let mut bytes = self.exec.wait(submission)?;
        if matches!(self.fault, InjectedFault::Nan) && self.shows() {
            bytes.fill(0xff);
        }
        Ok(bytes)
    }
}
