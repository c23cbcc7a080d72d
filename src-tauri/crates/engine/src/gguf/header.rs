//! The checked header: positions of every value and every tensor.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use kernels::BlockType;

use super::error::{GgufError, quote};
use super::value::{NOT_UTF8, Reader, Value};

/// Above the entries of any model; bounds the tables of a hostile file.
const MAX_ENTRIES: usize = 1 << 16;
const DEFAULT_ALIGNMENT: usize = 32;
const ALIGNMENT: &str = "general.alignment";
const ARCHITECTURE: &str = "general.architecture";
/// Prefix of descriptive keys. A model runs without them, except for the architecture and the alignment.
const DESCRIPTIVE: &str = "general.";

/// GGUF's tensor info: name, type, dimensions and position of a tensor.
#[derive(Clone, Debug)]
pub struct TensorInfo {
    /// Its name.
    pub name: String,
    /// Storage type of its values.
    pub ty: BlockType,
    /// One to four dimensions, fastest first as GGUF writes them.
    pub dims: Vec<usize>,
    /// Index of its file in a split model, from 0.
    pub part: usize,
    /// Range of its bytes in that file.
    pub data: Range<usize>,
}

/// A tensor of a type that cannot be read.
#[derive(Clone, Debug)]
pub struct UnsupportedTensor {
    /// Its name.
    pub name: String,
    /// The type's name, else its number.
    pub ty: Cow<'static, str>,
    /// Dimensions, fastest first.
    pub dims: Vec<usize>,
    /// Bytes up to the next tensor, or the end of the file.
    pub bytes: usize,
    start: usize,
}

impl TensorInfo {
    /// Values in a row.
    pub fn cols(&self) -> usize {
        self.dims[0]
    }

    /// Number of rows; 1 for a vector.
    pub fn rows(&self) -> usize {
        self.dims[1..].iter().product()
    }
}

pub(super) struct Header {
    pub(super) version: u32,
    /// Offset of each key's value (at its type).
    pub(super) fields: BTreeMap<String, usize>,
    pub(super) tensors: Vec<TensorInfo>,
    pub(super) unsupported: Vec<UnsupportedTensor>,
    by_name: BTreeMap<String, TensorIndex>,
    /// Offset of the end of the tensor infos.
    pub(super) end: usize,
    /// Offsets behind the data of the tensors that can be read: without the padding, and with it.
    pub(super) data_ends: [usize; 2],
}

/// Index of a tensor in one of the two lists.
#[derive(Clone, Copy)]
enum TensorIndex {
    Supported(usize),
    Unsupported(usize),
}

/// Error of parsing a header.
pub(super) enum HeaderError {
    /// More bytes of the file are needed.
    Incomplete,
    /// The header is damaged.
    Invalid(GgufError),
}

impl Header {
    /// Parses the header of a file of `file_len` bytes that begins with `file`.
    pub(super) fn parse(file: &[u8], file_len: usize) -> Result<Header, HeaderError> {
        let mut reader = Reader::of_prefix(file, file_len);
        let header = Header::read(&mut reader, file, file_len);
        header.map_err(|error| {
            if reader.is_truncated() {
                HeaderError::Incomplete
            } else {
                HeaderError::Invalid(error)
            }
        })
    }

    fn read(reader: &mut Reader<'_>, file: &[u8], file_len: usize) -> Result<Header, GgufError> {
        if !file.starts_with(b"GGUF") {
            return Err(GgufError::NotGguf);
        }
        reader.u32().map_err(GgufError::Header)?;
        let version = reader.u32().map_err(GgufError::Header)?;
        match version {
            2 | 3 => {}
            swapped if matches!(swapped.swap_bytes(), 2 | 3) => return Err(GgufError::BigEndian),
            other => return Err(GgufError::Version(other)),
        }
        // Least bytes: a tensor has a name's length, a dimension count, one dimension, a type and an offset; a field has a
        // key's length, a type and at least one byte.
        let tensor_count = entries(reader, 32, "tensors")?;
        let field_count = entries(reader, 13, "metadata keys")?;
        let fields = fields(reader, field_count)?;
        let mut header = Header {
            version,
            fields,
            tensors: Vec::new(),
            unsupported: Vec::new(),
            by_name: BTreeMap::new(),
            end: 0,
            data_ends: [0; 2],
        };
        let alignment = header.alignment(file)?;
        let unplaced_tensors = unplaced_tensors(reader, tensor_count)?;
        header.end = reader.at();
        let data_start = header.end.checked_next_multiple_of(alignment);
        let mut starts = Vec::with_capacity(unplaced_tensors.len());
        for unplaced_tensor in unplaced_tensors {
            let start = unplaced_tensor.start(file_len, data_start, alignment)?;
            header.add(unplaced_tensor.place(file_len, start)?)?;
            starts.push(start);
        }
        header.check_overlaps()?;
        header.measure_unsupported(starts, file_len);
        let end = (header.tensors.iter()).map(|tensor| tensor.data.end).max();
        let end = end.unwrap_or(header.end);
        let padded = end.checked_next_multiple_of(alignment);
        header.data_ends = [end, padded.unwrap_or(end)];
        Ok(header)
    }

    fn add(&mut self, tensor: PlacedTensor) -> Result<(), GgufError> {
        let (name, index) = match &tensor {
            PlacedTensor::Supported(it) => (&it.name, TensorIndex::Supported(self.tensors.len())),
            PlacedTensor::Unsupported(it) => {
                (&it.name, TensorIndex::Unsupported(self.unsupported.len()))
            }
        };
        if self.by_name.insert(name.clone(), index).is_some() {
            return Err(tensor_error(name, "it is defined twice"));
        }
        match tensor {
            PlacedTensor::Supported(tensor) => self.tensors.push(tensor),
            PlacedTensor::Unsupported(tensor) => self.unsupported.push(tensor),
        }
        Ok(())
    }

    /// Adds the tensors of the part with this number of the same model.
    pub(super) fn extend(&mut self, part: usize, other: Header) -> Result<(), GgufError> {
        for mut tensor in other.tensors {
            tensor.part = part;
            self.add(PlacedTensor::Supported(tensor))?;
        }
        for tensor in other.unsupported {
            self.add(PlacedTensor::Unsupported(tensor))?;
        }
        Ok(())
    }

    pub(super) fn value<'a>(&self, file: &'a [u8], key: &str) -> Option<Value<'a>> {
        let mut reader = Reader::new(&file[*self.fields.get(key)?..]);
        let ty = reader.ty().ok()?;
        reader.value(ty).ok()
    }

    /// Keys in the order of the file, each with the bytes of its value's type and of its value.
    pub(super) fn stored_fields<'a>(&'a self, file: &'a [u8]) -> Vec<(&'a str, &'a [u8])> {
        let stored = |start: usize| {
            let mut reader = Reader::new(&file[start..]);
            let ty = reader.ty().ok()?;
            reader.value(ty).ok()?;
            Some(&file[start..start + reader.at()])
        };
        let mut fields: Vec<(&str, usize)> = (self.fields.iter())
            .map(|(key, &start)| (key.as_str(), start))
            .collect();
        fields.sort_by_key(|&(_, start)| start);
        fields
            .into_iter()
            .filter_map(|(key, start)| Some((key, stored(start)?)))
            .collect()
    }

    pub(super) fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        match *self.by_name.get(name)? {
            TensorIndex::Supported(index) => Some(&self.tensors[index]),
            TensorIndex::Unsupported(_) => None,
        }
    }

    pub(super) fn unsupported_tensor(&self, name: &str) -> Option<&UnsupportedTensor> {
        match *self.by_name.get(name)? {
            TensorIndex::Supported(_) => None,
            TensorIndex::Unsupported(index) => Some(&self.unsupported[index]),
        }
    }

    fn alignment(&self, file: &[u8]) -> Result<usize, GgufError> {
        let Some(value) = self.value(file, ALIGNMENT) else {
            return Ok(DEFAULT_ALIGNMENT);
        };
        value
            .as_u64()
            .and_then(|alignment| usize::try_from(alignment).ok())
            .filter(|alignment| *alignment >= 8 && alignment.is_power_of_two())
            .ok_or_else(|| key_error(ALIGNMENT, "it is not a power of two of at least 8"))
    }

    /// Sets the sizes of tensors of unknown types: each reaches to the next of `starts`, which has the starts of all
    /// tensors.
    fn measure_unsupported(&mut self, mut starts: Vec<usize>, file_len: usize) {
        starts.sort_unstable();
        for tensor in &mut self.unsupported {
            let next = starts.partition_point(|&start| start <= tensor.start);
            let end = starts.get(next).copied().unwrap_or(file_len);
            tensor.bytes = end - tensor.start;
        }
    }

    /// Tensors without shared bytes cannot hold more than the file does.
    fn check_overlaps(&self) -> Result<(), GgufError> {
        let mut by_offset: Vec<&TensorInfo> = self.tensors.iter().collect();
        by_offset.sort_by_key(|tensor| tensor.data.start);
        for pair in by_offset.windows(2) {
            if pair[1].data.start < pair[0].data.end {
                return Err(tensor_error(
                    &pair[1].name,
                    format!("its data overlaps that of `{}`", quote(&pair[0].name)),
                ));
            }
        }
        Ok(())
    }
}

fn entries(reader: &mut Reader<'_>, min_bytes: usize, what: &str) -> Result<usize, GgufError> {
    let count = reader
        .count(min_bytes)
        .map_err(|problem| GgufError::Header(format!("{what}: {problem}")))?;
    if count > MAX_ENTRIES {
        return Err(GgufError::Header(format!(
            "{count} {what} are more than any model has"
        )));
    }
    Ok(count)
}

fn fields(reader: &mut Reader<'_>, count: usize) -> Result<BTreeMap<String, usize>, GgufError> {
    let mut fields = BTreeMap::new();
    for index in 0..count {
        let key = reader
            .string()
            .map_err(|problem| key_error(&format!("number {index}"), problem))?;
        let start = reader.at();
        let value = reader.ty().and_then(|ty| reader.value(ty));
        value.map_err(|problem| key_error(key, problem))?;
        let describes = key.starts_with(DESCRIPTIVE) && key != ARCHITECTURE;
        if reader.take_not_utf8() && !describes {
            return Err(key_error(key, NOT_UTF8));
        }
        if fields.insert(key.to_owned(), start).is_some() {
            return Err(key_error(key, "it is there twice"));
        }
    }
    Ok(fields)
}

/// A tensor info as written, before the start of the data is known.
struct UnplacedTensor {
    name: String,
    /// Its type, else the name of one that cannot be read.
    ty: Result<BlockType, Cow<'static, str>>,
    dims: Vec<usize>,
    /// Relative to the start of the data.
    offset: u64,
}

/// A tensor whose place in the file is known.
enum PlacedTensor {
    Supported(TensorInfo),
    Unsupported(UnsupportedTensor),
}

fn unplaced_tensors(
    reader: &mut Reader<'_>,
    count: usize,
) -> Result<Vec<UnplacedTensor>, GgufError> {
    let mut all = Vec::with_capacity(count);
    for index in 0..count {
        let name = reader
            .string()
            .map_err(|problem| tensor_error(&format!("number {index}"), problem))?;
        all.push(unplaced_tensor(reader, name).map_err(|problem| tensor_error(name, problem))?);
    }
    Ok(all)
}

fn unplaced_tensor(reader: &mut Reader<'_>, name: &str) -> Result<UnplacedTensor, String> {
    let dimensions = reader.u32()?;
    if !matches!(dimensions, 1..=4) {
        return Err(format!("{dimensions} dimensions"));
    }
    let mut dims = Vec::with_capacity(4);
    for _ in 0..dimensions {
        let dim = reader.u64()?;
        match usize::try_from(dim) {
            Ok(dim) if dim > 0 => dims.push(dim),
            _ => return Err(format!("a dimension of {dim}")),
        }
    }
    let id = reader.u32()?;
    Ok(UnplacedTensor {
        name: name.to_owned(),
        ty: BlockType::from_ggml(id).ok_or_else(|| type_name(id)),
        dims,
        offset: reader.u64()?,
    })
}

impl UnplacedTensor {
    /// Offset of its data in a file whose data begin at `data_start`.
    fn start(
        &self,
        file_len: usize,
        data_start: Option<usize>,
        alignment: usize,
    ) -> Result<usize, GgufError> {
        if !self.offset.is_multiple_of(alignment as u64) {
            let problem = format!("its offset {} is not aligned to {alignment}", self.offset);
            return Err(tensor_error(&self.name, problem));
        }
        let offset = usize::try_from(self.offset).ok();
        let start = data_start.and_then(|start| start.checked_add(offset?));
        start.filter(|&start| start <= file_len).ok_or_else(|| {
            tensor_error(
                &self.name,
                "its data begins past the end of the file, which must be incomplete",
            )
        })
    }

    fn place(self, file_len: usize, start: usize) -> Result<PlacedTensor, GgufError> {
        let problem = |problem: String| tensor_error(&self.name, problem);
        let rows = self.dims[1..]
            .iter()
            .try_fold(1usize, |rows, &dim| rows.checked_mul(dim));
        let absurd = || problem(format!("dimensions {:?} are absurd", self.dims));
        let ty = match self.ty {
            Ok(ty) => ty,
            Err(ty) => {
                rows.and_then(|rows| rows.checked_mul(self.dims[0]))
                    .ok_or_else(absurd)?;
                return Ok(PlacedTensor::Unsupported(UnsupportedTensor {
                    name: self.name,
                    ty,
                    dims: self.dims,
                    bytes: 0,
                    start,
                }));
            }
        };
        let row_bytes = ty.row_bytes(self.dims[0]).ok_or_else(|| {
            problem(format!(
                "rows of {} values do not divide into {} blocks",
                self.dims[0],
                ty.name()
            ))
        })?;
        let len = rows
            .and_then(|rows| rows.checked_mul(row_bytes))
            .ok_or_else(absurd)?;
        match start.checked_add(len) {
            Some(end) if end <= file_len => Ok(PlacedTensor::Supported(TensorInfo {
                name: self.name,
                ty,
                dims: self.dims,
                part: 0,
                data: start..end,
            })),
            _ => Err(problem(format!(
                "its data ({len} bytes) goes past the end of the file, which must be incomplete"
            ))),
        }
    }
}

/// Name of a ggml type without kernels here, else its number.
fn type_name(id: u32) -> Cow<'static, str> {
    let name = match id {
        9 => "Q8_1",
        15 => "Q8_K",
        16 => "IQ2_XXS",
        17 => "IQ2_XS",
        18 => "IQ3_XXS",
        19 => "IQ1_S",
        21 => "IQ3_S",
        22 => "IQ2_S",
        24 => "I8",
        25 => "I16",
        26 => "I32",
        27 => "I64",
        28 => "F64",
        29 => "IQ1_M",
        31 => "Q4_0_4_4",
        32 => "Q4_0_4_8",
        33 => "Q4_0_8_8",
        34 => "TQ1_0",
        35 => "TQ2_0",
        39 => "MXFP4",
        40 => "NVFP4",
        _ => return id.to_string().into(),
    };
    name.into()
}

fn key_error(key: &str, problem: impl Into<String>) -> GgufError {
    GgufError::Key {
        key: quote(key),
        problem: problem.into(),
    }
}

fn tensor_error(name: &str, problem: impl Into<String>) -> GgufError {
    GgufError::Tensor {
        name: quote(name),
        problem: problem.into(),
    }
}
