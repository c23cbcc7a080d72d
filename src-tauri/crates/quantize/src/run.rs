//! One run: reads, encodes and writes the tensors in chunks of rows, reads the file back, and renames it.

use std::hash::{DefaultHasher, Hasher};
use std::num::NonZero;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use engine::gguf::write::{self, Field, TensorSpec};
use engine::{Config, Gguf};
use kernels::BlockType;
use serde::Serialize;

use crate::blocks::{decode, encode};
use crate::choice::FileType;
use crate::error::QuantizeError;
use crate::model::{FloatModel, FloatTensor};
use crate::output::{self, Output};
use crate::{folder, gguf_input};

/// Values of a chunk: 4 MB in F32.
const CHUNK: usize = 1 << 20;
/// Chunks per thread that are in memory at once, so that threads rarely wait for the slowest.
const CHUNKS_PER_THREAD: usize = 4;
/// Thread limit: more would take more memory, and wait for the disk.
const MOST_THREADS: usize = 64;
/// Version of the block formats in the file.
const QUANTIZATION_VERSION: u32 = 2;

/// Parameters of a run.
#[derive(Clone, Debug)]
pub struct QuantizeRequest {
    /// A GGUF file or a Hugging Face folder.
    pub input: PathBuf,
    /// The GGUF file to write.
    pub output: PathBuf,
    /// Its mix of types.
    pub file_type: FileType,
    /// True to overwrite an existing file.
    pub overwrite: bool,
    /// CPU threads; `None` for one per logical core.
    pub threads: Option<usize>,
}

/// A part of the work, for a progress bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantizeStep {
    /// Encoding and writing.
    Write,
    /// Reading back and comparing.
    Verify,
}

/// Report of the output.
#[derive(Clone, Debug, Serialize)]
pub struct QuantizeReport {
    /// The mix of types.
    pub file_type: FileType,
    /// Bytes of the input's tensors and headers.
    pub input_bytes: u64,
    /// Bytes of the output.
    pub output_bytes: u64,
    /// Number of weights.
    pub parameters: u64,
    /// Bits of the output's tensors per weight.
    pub bits_per_weight: f64,
    /// Root of the squared error of all tensors over their squared norm.
    pub relative_error: f64,
    /// Seconds in total.
    pub seconds: f64,
    /// Every tensor, in the order of the file.
    pub tensors: Vec<QuantizedTensor>,
}

/// One tensor of the output.
#[derive(Clone, Debug, Serialize)]
pub struct QuantizedTensor {
    /// Its name.
    pub name: String,
    /// ggml's name of its type.
    #[serde(rename = "type")]
    pub ty: &'static str,
    /// Dimensions, fastest first.
    pub dims: Vec<usize>,
    /// Its bytes.
    pub bytes: u64,
    /// Root of the squared error over the squared norm.
    pub relative_error: f64,
}

/// Quantises a model. `progress` receives the weights that a step has done, and their total.
///
/// # Errors
/// Names the file, and the key or the tensor at fault. No file is left then, nor when `cancel` was set.
pub fn quantize(
    request: &QuantizeRequest,
    progress: &mut dyn FnMut(QuantizeStep, u64, u64),
    cancel: &AtomicBool,
) -> Result<QuantizeReport, QuantizeError> {
    let began = Instant::now();
    output::check(&request.output, &[&request.input], request.overwrite)?;
    let model = open(&request.input)?;
    // A folder's files are known only now.
    let inputs: Vec<&Path> = model.files.iter().map(|input| &*input.path).collect();
    output::check(&request.output, &inputs, request.overwrite)?;
    let plan = OutputPlan::new(&model, request.file_type)?;
    let threads = request
        .threads
        .or_else(|| thread::available_parallelism().ok().map(NonZero::get));
    let workers = Workers {
        threads: threads.unwrap_or(1).clamp(1, MOST_THREADS),
        cancel,
    };
    let mut output = Output::create(&request.output, plan.len(), request.overwrite)?;
    let sums = plan.write(&model, &mut output, &workers, &mut |done, total| {
        progress(QuantizeStep::Write, done, total);
    })?;
    output.sync()?;
    let tensors = plan.verify(&model, &output, &sums, &workers, &mut |done, total| {
        progress(QuantizeStep::Verify, done, total);
    })?;
    output.finish()?;
    let (error, norm) = tensors.iter().fold((0.0, 0.0), |sum, tensor| {
        (sum.0 + tensor.1.error, sum.1 + tensor.1.norm)
    });
    let parameters = plan.parameters();
    let bytes: u64 = plan.tensors.iter().map(|tensor| tensor.len as u64).sum();
    Ok(QuantizeReport {
        file_type: request.file_type,
        input_bytes: model.bytes(),
        output_bytes: plan.len(),
        parameters,
        bits_per_weight: bytes as f64 * 8.0 / parameters.max(1) as f64,
        relative_error: relative(error, norm),
        seconds: began.elapsed().as_secs_f64(),
        tensors: tensors.into_iter().map(|(tensor, _)| tensor).collect(),
    })
}

/// Opens the model in floats at a path.
fn open(path: &Path) -> Result<FloatModel, QuantizeError> {
    if path.is_dir() {
        folder::open(path)
    } else {
        gguf_input::open(path)
    }
}

/// Header and layout of the output.
struct OutputPlan {
    header: Vec<u8>,
    tensors: Vec<TensorSpec>,
    chunks: Vec<Chunk>,
}

/// Some rows of a tensor.
struct Chunk {
    tensor: usize,
    rows: Range<usize>,
}

/// Squared error and squared norm.
#[derive(Clone, Copy, Default)]
struct Deviation {
    error: f64,
    norm: f64,
}

impl OutputPlan {
    fn new(model: &FloatModel, file_type: FileType) -> Result<OutputPlan, QuantizeError> {
        let (layers, tied) = (model.config.shape.layers, model.is_tied());
        let describe = |tensor: &FloatTensor| {
            let is_matrix = tensor.dims.len() > 1 && !tensor.name.ends_with("_norm.weight");
            let ty = if is_matrix {
                file_type.of_matrix(&tensor.name, tensor.cols(), layers, tied)
            } else {
                BlockType::F32
            };
            let row = ty
                .row_bytes(tensor.cols())
                .and_then(|row| row.checked_mul(tensor.rows()));
            let len = row.ok_or_else(|| {
                let problem = format!(
                    "rows of {} values cannot be stored as {}",
                    tensor.cols(),
                    ty.name()
                );
                QuantizeError::tensor(&model.path, &tensor.name, problem)
            })?;
            Ok(TensorSpec {
                name: tensor.name.clone(),
                ty,
                dims: tensor.dims.clone(),
                len,
            })
        };
        let tensors: Vec<TensorSpec> = model
            .tensors
            .iter()
            .map(describe)
            .collect::<Result<_, _>>()?;
        let own = [
            ("general.file_type", Field::U32(file_type.id())),
            (
                "general.quantization_version",
                Field::U32(QUANTIZATION_VERSION),
            ),
        ];
        let fields = model
            .fields
            .iter()
            .map(|(key, field)| (key.as_str(), field.clone()));
        let header = write::header(fields.chain(own), &tensors);
        let mut chunks = Vec::new();
        for (index, tensor) in model.tensors.iter().enumerate() {
            let (rows, step) = (tensor.rows(), (CHUNK / tensor.cols().max(1)).max(1));
            chunks.extend((0..rows).step_by(step).map(|row| Chunk {
                tensor: index,
                rows: row..rows.min(row + step),
            }));
        }
        Ok(OutputPlan {
            header,
            tensors,
            chunks,
        })
    }

    /// Returns the bytes of the whole file.
    fn len(&self) -> u64 {
        let padded = |tensor: &TensorSpec| (tensor.len + write::padding(tensor.len)) as u64;
        self.header.len() as u64 + self.tensors.iter().map(padded).sum::<u64>()
    }

    /// Returns the number of weights.
    fn parameters(&self) -> u64 {
        let count = |tensor: &TensorSpec| tensor.dims.iter().product::<usize>() as u64;
        self.tensors.iter().map(count).sum()
    }

    /// Returns the values of a chunk.
    fn values(&self, chunk: &Chunk) -> usize {
        chunk.rows.len() * self.tensors[chunk.tensor].dims[0]
    }

    /// Writes everything; returns a checksum of each chunk.
    fn write(
        &self,
        model: &FloatModel,
        output: &mut Output,
        workers: &Workers<'_>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<u64>, QuantizeError> {
        let encode_chunk = |chunk: &Chunk| {
            let (tensor, planned) = (&model.tensors[chunk.tensor], &self.tensors[chunk.tensor]);
            let values = model.rows(tensor, chunk.rows.clone())?;
            let mut bytes =
                Vec::with_capacity(planned.len / tensor.rows().max(1) * chunk.rows.len());
            encode(planned.ty, &values, &mut bytes)
                .map_err(|error| QuantizeError::tensor(&model.path, &tensor.name, error))?;
            Ok((checksum(&bytes), bytes))
        };
        output.write(&self.header)?;
        let (mut sums, mut done) = (Vec::with_capacity(self.chunks.len()), 0);
        for batch in self.chunks.chunks(workers.threads * CHUNKS_PER_THREAD) {
            let encoded = workers.each(batch, encode_chunk)?;
            for (chunk, (sum, bytes)) in batch.iter().zip(encoded) {
                output.write(&bytes)?;
                sums.push(sum);
                done += self.values(chunk) as u64;
                let tensor = &self.tensors[chunk.tensor];
                if chunk.rows.end == model.tensors[chunk.tensor].rows() {
                    output.write(&[0; write::ALIGNMENT][..write::padding(tensor.len)])?;
                }
            }
            progress(done, self.parameters());
        }
        Ok(sums)
    }

    /// Reads the file back: its header, every byte of its tensors, and the distance of their values from the source.
    fn verify(
        &self,
        model: &FloatModel,
        output: &Output,
        sums: &[u64],
        workers: &Workers<'_>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Vec<(QuantizedTensor, Deviation)>, QuantizeError> {
        let written = self.reopen(model, output)?;
        let indexed: Vec<(usize, &Chunk)> = self.chunks.iter().enumerate().collect();
        let compare = |&(index, chunk): &(usize, &Chunk)| {
            let (tensor, planned) = (&model.tensors[chunk.tensor], &self.tensors[chunk.tensor]);
            let fail = |problem: String| QuantizeError::tensor(&model.path, &tensor.name, problem);
            let damaged = || fail("what was written is not what is read back".to_owned());
            let view = written.tensor(&planned.name).ok_or_else(damaged)?;
            let row = planned.len / tensor.rows().max(1);
            let mut buffer = Vec::new();
            let bytes = view
                .bytes
                .get(chunk.rows.start * row..chunk.rows.end * row, &mut buffer);
            let bytes = bytes.map_err(|error| fail(format!("cannot be read back: {error}")))?;
            if checksum(bytes) != sums[index] {
                return Err(damaged());
            }
            let source = model.rows(tensor, chunk.rows.clone())?;
            let stored =
                decode(planned.ty, bytes, source.len()).map_err(|error| fail(error.to_string()))?;
            let mut sum = Deviation::default();
            for (&x, &y) in source.iter().zip(&stored) {
                sum.error += (f64::from(x) - f64::from(y)).powi(2);
                sum.norm += f64::from(x).powi(2);
            }
            if !sum.error.is_finite() {
                return Err(fail(format!(
                    "it has values too large for {}",
                    planned.ty.name()
                )));
            }
            Ok(sum)
        };
        let (mut totals, mut done) = (vec![Deviation::default(); self.tensors.len()], 0);
        for batch in indexed.chunks(workers.threads * CHUNKS_PER_THREAD) {
            for (&(_, chunk), sum) in batch.iter().zip(workers.each(batch, compare)?) {
                totals[chunk.tensor].error += sum.error;
                totals[chunk.tensor].norm += sum.norm;
                done += self.values(chunk) as u64;
            }
            progress(done, self.parameters());
        }
        let report = |(tensor, total): (&TensorSpec, Deviation)| {
            let tensor = QuantizedTensor {
                name: tensor.name.clone(),
                ty: tensor.ty.name(),
                dims: tensor.dims.clone(),
                bytes: tensor.len as u64,
                relative_error: relative(total.error, total.norm),
            };
            (tensor, total)
        };
        Ok(self.tensors.iter().zip(totals).map(report).collect())
    }

    /// Opens the output and compares its descriptions with the intended ones.
    fn reopen(&self, model: &FloatModel, output: &Output) -> Result<Gguf, QuantizeError> {
        let damaged = |problem: String| {
            let problem = format!("the file that was written cannot be read back: {problem}");
            QuantizeError::output(output.path(), problem)
        };
        let written = Gguf::open(output.temporary()).map_err(|error| damaged(error.to_string()))?;
        let config = Config::from_gguf(&written).map_err(|error| damaged(error.to_string()))?;
        let same = written.tensors().len() == self.tensors.len()
            && (written.tensors().iter().zip(&self.tensors)).all(|(read, meant)| {
                read.name == meant.name
                    && read.ty == meant.ty
                    && read.dims == meant.dims
                    && read.data.len() == meant.len
            });
        if config != model.config || !same || written.file_bytes() as u64 != self.len() {
            return Err(damaged("its header is another".to_owned()));
        }
        Ok(written)
    }
}

/// The threads that encode and compare.
struct Workers<'a> {
    threads: usize,
    cancel: &'a AtomicBool,
}

impl Workers<'_> {
    /// Returns the results of `work` for each item, in order; each thread takes the next free item.
    fn each<T: Sync, R: Send>(
        &self,
        items: &[T],
        work: impl Fn(&T) -> Result<R, QuantizeError> + Sync,
    ) -> Result<Vec<R>, QuantizeError> {
        let next = AtomicUsize::new(0);
        let take = || {
            let mut made = Vec::new();
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(item) = items.get(index) else {
                    return Ok(made);
                };
                if self.cancel.load(Ordering::Relaxed) {
                    return Err(QuantizeError::Cancelled);
                }
                made.push((index, work(item)?));
            }
        };
        let made = thread::scope(|scope| {
            let others: Vec<_> = (1..self.threads.min(items.len()))
                .map(|_| scope.spawn(take))
                .collect();
            let mut all: Vec<Result<Vec<_>, _>> = vec![take()];
            for other in others {
                all.push(
                    other
                        .join()
                        .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                );
            }
            all.into_iter().collect::<Result<Vec<_>, _>>()
        })?;
        let mut made: Vec<_> = made.into_iter().flatten().collect();
        made.sort_unstable_by_key(|&(index, _)| index);
        Ok(made.into_iter().map(|(_, result)| result).collect())
    }
}

fn checksum(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

fn relative(error: f64, norm: f64) -> f64 {
    if norm > 0.0 {
        (error / norm).sqrt()
    } else {
        error.sqrt()
    }
}
