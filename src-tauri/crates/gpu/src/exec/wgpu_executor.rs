//! The executor on wgpu: Vulkan or Metal.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use wgpu::{
    BindGroup, BindGroupDescriptor, BindGroupEntry, Buffer, BufferDescriptor, BufferUsages,
    ComputePass, ComputePassDescriptor, ComputePassTimestampWrites, ComputePipeline,
    ComputePipelineDescriptor, Device, DeviceDescriptor, ExperimentalFeatures, Features, MapMode,
    MemoryHints, PipelineCompilationOptions, PollError, PollType, QUERY_SIZE, QuerySetDescriptor,
    QueryType, Queue, ShaderModuleDescriptor, ShaderRuntimeChecks, ShaderSource, SubmissionIndex,
};

use crate::device::adapter::{self, Allowed, GpuInfo, GpuKind};
use crate::device::limits::{CoopMatrices, DeviceLimits};
use crate::error::GpuError;
use crate::exec::executor::{Dispatch, Executor};
use crate::kernel::Kernel;

/// Timeout of a submit.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Readback buffers that are kept for reuse.
const MAX_READBACKS: usize = 4;
/// Dispatches of one query set, which holds two timestamps of each.
const MAX_TIMED: usize = 1024;
/// Size of the blocks of device memory that small buffers share, in bytes. With wgpu's default, 256 MB, much would stay
/// unused on a device that is nearly full, and memory of released buffers would not become free.
const BLOCK_BYTES: Range<u64> = 8 << 20..16 << 20;
/// Bytes of staging buffers in flight: more would push weights out of the device's memory.
const STAGING_BYTES: usize = 32 << 20;

/// A GPU through wgpu. Clones are the same device.
#[derive(Clone)]
pub struct Wgpu {
    info: GpuInfo,
    device: Device,
    queue: Queue,
    pipelines: Arc<Mutex<HashMap<Kernel, ComputePipeline>>>,
    /// The first error of the driver; wgpu reports errors by callback.
    error: Arc<FirstError>,
    /// The loss of the device, which is final.
    loss: Arc<FirstError>,
    readbacks: Vec<Buffer>,
    staged: usize,
    matrices: Option<CoopMatrices>,
}

/// A submit in flight, with its readback buffer and the bytes to read.
pub struct WgpuSubmission {
    index: SubmissionIndex,
    readback: Option<(Buffer, u64)>,
}

/// The first error that was reported.
#[derive(Default)]
struct FirstError(Mutex<Option<GpuError>>);

impl FirstError {
    fn record(&self, error: GpuError) {
        lock(&self.0).get_or_insert(error);
    }
}

/// Locks a mutex whose content is consistent even after a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A kernel with its buffers.
pub struct WgpuKernel {
    pipeline: ComputePipeline,
    group: BindGroup,
}

fn record(pass: &mut ComputePass<'_>, dispatch: &Dispatch<'_, WgpuKernel>) {
    pass.set_pipeline(&dispatch.bound.pipeline);
    pass.set_bind_group(0, &dispatch.bound.group, &[]);
    pass.set_immediates(0, bytemuck::cast_slice(&dispatch.step));
    let [x, y, z] = dispatch.groups;
    pass.dispatch_workgroups(x, y, z);
}

impl Wgpu {
    /// Opens the GPU with this id, or the first that may be used.
    ///
    /// # Errors
    /// [`GpuError::NoDevice`] with the reason.
    pub fn open(id: Option<&str>, allowed: Allowed) -> Result<Wgpu, GpuError> {
        let (adapter, info) = adapter::open_adapter(id, allowed.software)?;
        let limits = adapter.limits();
        let matrices = adapter::coop_matrices(&adapter).filter(|_| allowed.matrices);
        let mut features =
            adapter::required_features() | adapter.features() & Features::TIMESTAMP_QUERY;
        let mut experimental_features = ExperimentalFeatures::disabled();
        if matrices.is_some() {
            features |= adapter::COOP_FEATURES;
            // SAFETY: only the kernel `mat_mul_coop` uses the experimental feature, and its accesses are in bounds like those of
            // the others. Bugs of wgpu or a driver are found by the check, in a process of its own, before a model runs
            // with it; only `bench` with random weights runs unchecked.
            experimental_features = unsafe { ExperimentalFeatures::enabled() };
        }
        let descriptor = DeviceDescriptor {
            label: Some("goldcrest"),
            required_features: features,
            experimental_features,
            required_limits: limits,
            memory_hints: MemoryHints::Manual {
                suballocated_device_memory_block_size: BLOCK_BYTES,
            },
            ..DeviceDescriptor::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor))
            .map_err(|error| GpuError::NoDevice(format!("{}: {error}", info.name)))?;
        let first_error = Arc::new(FirstError::default());
        let uncaptured = Arc::clone(&first_error);
        device.on_uncaptured_error(Arc::new(move |error| {
            let error = match error {
                wgpu::Error::OutOfMemory { source } => GpuError::OutOfMemory(source.to_string()),
                wgpu::Error::Validation { description, .. }
                | wgpu::Error::Internal { description, .. } => GpuError::Refused(description),
            };
            uncaptured.record(error);
        }));
        let loss = Arc::new(FirstError::default());
        let lost = Arc::clone(&loss);
        device.set_device_lost_callback(move |_, words| {
            // wgpu gives up a device whose memory is full.
            let is_full = words == wgpu::hal::DeviceError::OutOfMemory.to_string();
            let error = if is_full {
                GpuError::OutOfMemory
            } else {
                GpuError::Lost
            };
            lost.record(error(words));
        });
        Ok(Wgpu {
            info,
            device,
            queue,
            pipelines: Arc::default(),
            error: first_error,
            loss,
            readbacks: Vec::new(),
            staged: 0,
            matrices,
        })
    }

    /// The device.
    pub fn info(&self) -> &GpuInfo {
        &self.info
    }

    fn check(&self) -> Result<(), GpuError> {
        let error = lock(&self.loss.0).clone();
        let error = error.or_else(|| lock(&self.error.0).clone());
        error.map_or(Ok(()), Err)
    }

    /// Waits for a submission, or for all.
    fn poll(&self, submission_index: Option<SubmissionIndex>) -> Result<(), GpuError> {
        let wait = PollType::Wait {
            submission_index,
            timeout: Some(TIMEOUT),
        };
        self.check()?;
        // wgpu panics if the device is lost while it waits.
        let polled = panic::catch_unwind(AssertUnwindSafe(|| self.device.poll(wait)));
        let Ok(polled) = polled else {
            self.loss
                .record(GpuError::Lost("it did not answer".to_owned()));
            return self.check();
        };
        match polled {
            Ok(_) => self.check(),
            // Recorded, so that every later call fails at once.
            Err(PollError::Timeout) => {
                self.error.record(GpuError::TimedOut(TIMEOUT.as_secs()));
                self.check()
            }
            Err(error) => Err(GpuError::Lost(error.to_string())),
        }
    }

    /// A readback buffer of at least `bytes`.
    fn readback(&mut self, bytes: u64) -> Buffer {
        let fits = |buffer: &Buffer| (bytes..4 * bytes + 64).contains(&buffer.size());
        match self.readbacks.iter().position(fits) {
            Some(index) => self.readbacks.swap_remove(index),
            None => self.device.create_buffer(&BufferDescriptor {
                label: Some("readback"),
                size: bytes,
                usage: BufferUsages::MAP_READ | BufferUsages::COPY_DST,
                mapped_at_creation: false,
            }),
        }
    }

    /// Seconds of each of at most [`MAX_TIMED`] dispatches.
    fn time(&mut self, dispatches: &[Dispatch<'_, WgpuKernel>]) -> Result<Vec<f64>, GpuError> {
        let count = 2 * u32::try_from(dispatches.len()).unwrap_or(u32::MAX);
        let query_set = self.device.create_query_set(&QuerySetDescriptor {
            label: Some("times"),
            ty: QueryType::Timestamp,
            count,
        });
        let bytes = u64::from(count) * u64::from(QUERY_SIZE);
        let resolved = self.device.create_buffer(&BufferDescriptor {
            label: Some("times"),
            size: bytes,
            usage: BufferUsages::QUERY_RESOLVE | BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        let mut encoder = self.device.create_command_encoder(&Default::default());
        for (begin, dispatch) in (0..).step_by(2).zip(dispatches) {
            let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor {
                label: None,
                timestamp_writes: Some(ComputePassTimestampWrites {
                    query_set: &query_set,
                    beginning_of_pass_write_index: Some(begin),
                    end_of_pass_write_index: Some(begin + 1),
                }),
            });
            record(&mut pass, dispatch);
        }
        encoder.resolve_query_set(&query_set, 0..count, &resolved, 0);
        self.queue.submit([encoder.finish()]);
        let ticks: Vec<u64> = bytemuck::pod_collect_to_vec(&self.read(&resolved, bytes)?);
        let period = f64::from(self.queue.get_timestamp_period()) / 1e9;
        let (pairs, _) = ticks.as_chunks::<2>();
        Ok(pairs
            .iter()
            .map(|[begin, end]| end.saturating_sub(*begin) as f64 * period)
            .collect())
    }

    fn pipeline(&mut self, kernel: &Kernel) -> Result<ComputePipeline, GpuError> {
        if let Some(pipeline) = lock(&self.pipelines).get(kernel) {
            return Ok(pipeline.clone());
        }
        let text = ShaderModuleDescriptor {
            label: Some(kernel.file),
            source: ShaderSource::Wgsl(Cow::Owned(kernel.source()?)),
        };
        // SAFETY: The source is ours, from `wgsl/`, never a model's or a user's. Its loops end, and its accesses are in
        // bounds: the lengths of its buffers follow from the same constants, which `plan` sets and the tests of `check`
        // try with odd shapes.
        let module = unsafe {
            self.device
                .create_shader_module_trusted(text, ShaderRuntimeChecks::unchecked())
        };
        let pipeline = self
            .device
            .create_compute_pipeline(&ComputePipelineDescriptor {
                label: Some(kernel.file),
                layout: None,
                module: &module,
                entry_point: Some("main"),
                compilation_options: PipelineCompilationOptions {
                    constants: &[],
                    zero_initialize_workgroup_memory: false,
                },
                cache: None,
            });
        self.check()?;
        lock(&self.pipelines).insert(kernel.clone(), pipeline.clone());
        Ok(pipeline)
    }
}

impl Executor for Wgpu {
    type Buffer = Buffer;
    type BoundKernel = WgpuKernel;
    type Submission = WgpuSubmission;

    fn limits(&self) -> DeviceLimits {
        let limits = self.device.limits();
        DeviceLimits {
            binding: limits
                .max_storage_buffer_binding_size
                .min(limits.max_buffer_size),
            shared: limits.max_compute_workgroup_storage_size,
            invocations: limits.max_compute_invocations_per_workgroup,
            discrete: matches!(self.info.kind, GpuKind::Discrete | GpuKind::Software),
            matrices: self.matrices,
        }
    }

    fn buffer(&mut self, name: &str, bytes: u64) -> Result<Buffer, GpuError> {
        let buffer = self.device.create_buffer(&BufferDescriptor {
            label: Some(name),
            size: bytes.next_multiple_of(16).max(16),
            usage: BufferUsages::STORAGE | BufferUsages::COPY_DST | BufferUsages::COPY_SRC,
            mapped_at_creation: false,
        });
        // Out of memory is recoverable unless the device is lost: a smaller buffer may still fit.
        let full = lock(&self.error.0).take_if(|it| matches!(it, GpuError::OutOfMemory(_)));
        match full {
            Some(full) => Err(full),
            None => self.check().map(|()| buffer),
        }
    }

    fn write(&mut self, buffer: &Buffer, offset: u64, bytes: &[u8]) -> Result<(), GpuError> {
        let mut offset = offset;
        for piece in bytes.chunks(STAGING_BYTES) {
            self.queue.write_buffer(buffer, offset, piece);
            offset += piece.len() as u64;
            self.staged += piece.len();
            if self.staged >= STAGING_BYTES {
                self.queue.submit([]);
                self.poll(None)?;
                self.staged = 0;
            }
        }
        self.check()
    }

    fn copy(&mut self, from: &Buffer, to: &Buffer, bytes: u64) -> Result<(), GpuError> {
        let mut encoder = self.device.create_command_encoder(&Default::default());
        encoder.copy_buffer_to_buffer(from, 0, to, 0, bytes);
        self.queue.submit([encoder.finish()]);
        self.check()
    }

    fn bind(&mut self, kernel: &Kernel, buffers: &[&Buffer]) -> Result<WgpuKernel, GpuError> {
        let pipeline = self.pipeline(kernel)?;
        let entries: Vec<BindGroupEntry<'_>> = (0..)
            .zip(buffers)
            .map(|(binding, buffer)| BindGroupEntry {
                binding,
                resource: buffer.as_entire_binding(),
            })
            .collect();
        let group = self.device.create_bind_group(&BindGroupDescriptor {
            label: Some(kernel.file),
            layout: &pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        self.check()?;
        Ok(WgpuKernel { pipeline, group })
    }

    fn submit(
        &mut self,
        dispatches: &[Dispatch<'_, WgpuKernel>],
        readback: Option<(&Buffer, u64)>,
    ) -> Result<WgpuSubmission, GpuError> {
        let mut encoder = self.device.create_command_encoder(&Default::default());
        if !dispatches.is_empty() {
            let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor::default());
            for dispatch in dispatches {
                record(&mut pass, dispatch);
            }
        }
        let readback = readback.map(|(buffer, bytes)| {
            let readback = self.readback(bytes.next_multiple_of(4));
            encoder.copy_buffer_to_buffer(buffer, 0, &readback, 0, bytes.next_multiple_of(4));
            (readback, bytes)
        });
        let index = self.queue.submit([encoder.finish()]);
        if let Some((readback, bytes)) = &readback {
            // An error is reported by the wait.
            let mapped = readback.slice(..bytes.next_multiple_of(4));
            mapped.map_async(MapMode::Read, |_| {});
        }
        self.check()?;
        Ok(WgpuSubmission { index, readback })
    }

    fn timed(
        &mut self,
        dispatches: &[Dispatch<'_, WgpuKernel>],
    ) -> Result<Option<Vec<f64>>, GpuError> {
        if !self.device.features().contains(Features::TIMESTAMP_QUERY) {
            return Ok(None);
        }
        let mut seconds = Vec::with_capacity(dispatches.len());
        for some in dispatches.chunks(MAX_TIMED) {
            seconds.extend(self.time(some)?);
        }
        Ok(Some(seconds))
    }

    fn wait(&mut self, submission: WgpuSubmission) -> Result<Vec<u8>, GpuError> {
        self.poll(Some(submission.index))?;
        let Some((readback, bytes)) = submission.readback else {
            return Ok(Vec::new());
        };
        let mapped = readback
            .slice(..bytes.next_multiple_of(4))
            .get_mapped_range()
            .map_err(|error| GpuError::Lost(error.to_string()))?;
        #[expect(clippy::cast_possible_truncation, reason = "it is in memory already")]
        let out = mapped[..bytes as usize].to_vec();
        drop(mapped);
        readback.unmap();
        if self.readbacks.len() < MAX_READBACKS {
            self.readbacks.push(readback);
        }
        Ok(out)
    }
}
