//! The formats of weights on the GPU: aligned sections of 16-byte vectors, as many bytes as in the file.

use half::f16;
use kernels::{BlockType, Levels};

/// Weights of a group, and values of a group of activations.
pub const GROUP: usize = 32;

/// A format of weights that the kernels decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WeightFormat {
    /// 4 bits, scale and minimum per 32.
    Q4K,
    /// 5 bits, scale and minimum per 32.
    Q5K,
    /// 6 bits, scale per 16.
    Q6K,
    /// 8 bits, scale per 32.
    Q8,
    /// Indices in a table of 16 values, scale per 32.
    IQ4NL,
    /// Indices in the same table, super-blocks of eight scales.
    IQ4XS,
    /// IEEE half precision.
    F16,
    /// bfloat16.
    BF16,
}

/// Bytes of one of the arrays that a matrix is split into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Offset in the buffer, in bytes.
    pub offset: u64,
    /// The bytes.
    pub data: Vec<u8>,
}

impl WeightFormat {
    /// The format of weights whose type in the file is `ty`.
    pub fn of(ty: BlockType) -> WeightFormat {
        match ty {
            BlockType::Q4K => WeightFormat::Q4K,
            BlockType::Q5K => WeightFormat::Q5K,
            BlockType::Q6K => WeightFormat::Q6K,
            BlockType::IQ4NL => WeightFormat::IQ4NL,
            BlockType::IQ4XS => WeightFormat::IQ4XS,
            BlockType::F32 | BlockType::F16 => WeightFormat::F16,
            BlockType::BF16 => WeightFormat::BF16,
            BlockType::Q4_0
            | BlockType::Q4_1
            | BlockType::Q5_0
            | BlockType::Q5_1
            | BlockType::Q8_0
            | BlockType::Q2K
            | BlockType::Q3K => WeightFormat::Q8,
        }
    }

    /// Returns true if it holds weights of type `ty` without conversion.
    pub fn keeps(self, ty: BlockType) -> bool {
        match self {
            WeightFormat::Q4K => ty == BlockType::Q4K,
            WeightFormat::Q5K => ty == BlockType::Q5K,
            WeightFormat::Q6K => ty == BlockType::Q6K,
            WeightFormat::Q8 => ty == BlockType::Q8_0,
            WeightFormat::IQ4NL => ty == BlockType::IQ4NL,
            WeightFormat::IQ4XS => ty == BlockType::IQ4XS,
            WeightFormat::F16 => ty == BlockType::F16,
            WeightFormat::BF16 => ty == BlockType::BF16,
        }
    }

    /// Returns true if the weights are floats instead of integers with scales.
    pub fn is_float(self) -> bool {
        matches!(self, WeightFormat::F16 | WeightFormat::BF16)
    }

    /// The file of `wgsl/` that decodes it.
    pub fn file(self) -> &'static str {
        match self {
            WeightFormat::Q4K => "q4k",
            WeightFormat::Q5K => "q5k",
            WeightFormat::Q6K => "q6k",
            WeightFormat::Q8 => "q8",
            WeightFormat::IQ4NL => "iq4nl",
            WeightFormat::IQ4XS => "iq4xs",
            WeightFormat::F16 => "f16",
            WeightFormat::BF16 => "bf16",
        }
    }

    /// Bytes of each section per 256 weights.
    fn sections(self) -> &'static [usize] {
        match self {
            WeightFormat::Q4K => &[16, 128],
            WeightFormat::Q5K => &[16, 128, 32],
            WeightFormat::Q6K => &[128, 64, 16, 2],
            WeightFormat::Q8 => &[256, 16],
            WeightFormat::IQ4NL => &[128, 16],
            WeightFormat::IQ4XS => &[128, 8],
            WeightFormat::F16 | WeightFormat::BF16 => &[512],
        }
    }

    /// Size of a matrix of `rows` × `cols` weights, in bytes: whole 16-byte vectors.
    pub fn bytes(self, rows: usize, cols: usize) -> u64 {
        self.offsets(rows, cols)[self.sections().len()]
    }

    /// Offset of each section of a matrix, then its size.
    fn offsets(self, rows: usize, cols: usize) -> [u64; 5] {
        let mut offsets = [0; 5];
        for (index, bytes) in self.sections().iter().enumerate() {
            let section = (rows * cols * bytes).div_ceil(256).next_multiple_of(16);
            offsets[index + 1] = offsets[index] + section as u64;
        }
        offsets
    }

    /// Repacks rows `first..` of a matrix of `rows` × `cols` from the file's format. `first` is a multiple of 8, so that
    /// every section's bytes begin at a whole word.
    pub fn repack(
        self,
        ty: BlockType,
        stored: &[u8],
        rows: usize,
        cols: usize,
        first: usize,
    ) -> Vec<Section> {
        let offsets = self.offsets(rows, cols);
        let mut sections: Vec<Section> = (0..self.sections().len())
            .map(|index| Section {
                offset: offsets[index] + (first * cols * self.sections()[index] / 256) as u64,
                data: Vec::new(),
            })
            .collect();
        if self.keeps(ty) && self.is_float() {
            sections[0].data = stored.to_vec();
        } else if self.keeps(ty) {
            let mut levels = Levels::new();
            for block in stored.chunks_exact(ty.block_bytes()) {
                levels.read(ty, block);
                self.block(&levels, block, &mut sections);
            }
        } else {
            self.converted(ty, stored, &mut sections);
        }
        for section in &mut sections {
            let whole = section.data.len().next_multiple_of(4);
            section.data.resize(whole, 0);
        }
        sections
    }

    fn block(self, levels: &Levels, stored: &[u8], to: &mut [Section]) {
        match self {
            WeightFormat::Q4K | WeightFormat::Q5K => {
                to[0].data.extend(&stored[..16]);
                nibbles(&levels.q, &mut to[1].data);
                if self == WeightFormat::Q5K {
                    for group in levels.q.chunks_exact(GROUP) {
                        to[2].data.extend(upper(group, 4, 1));
                    }
                }
            }
            WeightFormat::Q6K => {
                nibbles(&levels.q, &mut to[0].data);
                for half in levels.q.chunks_exact(GROUP / 2) {
                    to[1].data.extend(upper(half, 4, 2));
                }
                to[2].data.extend(levels.scale.map(i8::cast_unsigned));
                to[3].data.extend(levels.d.to_le_bytes());
            }
            // The file's nibbles lie as `nibbles` packs them.
            WeightFormat::Q8 | WeightFormat::IQ4NL => {
                to[0].data.extend(&stored[2..]);
                to[1].data.extend(&stored[..2]);
            }
            WeightFormat::IQ4XS => {
                to[0].data.extend(&stored[8..]);
                to[1].data.extend(&stored[..8]);
            }
            WeightFormat::F16 | WeightFormat::BF16 => {}
        }
    }

    fn converted(self, ty: BlockType, stored: &[u8], to: &mut [Section]) {
        let mut values = vec![0.0; ty.block_len().max(GROUP)];
        let bytes = values.len() / ty.block_len() * ty.block_bytes();
        for stored in stored.chunks_exact(bytes) {
            // The lengths fit by the line above.
            let _ = kernels::dequantise(ty, stored, &mut values);
            for group in values.chunks_exact(GROUP) {
                if self == WeightFormat::Q8 {
                    let (scale, bytes) = q8_0(group);
                    to[0].data.extend(bytes);
                    to[1].data.extend(scale.to_le_bytes());
                } else {
                    for &value in group {
                        to[0].data.extend(f16::from_f32(value).to_le_bytes());
                    }
                }
            }
        }
    }
}

/// Packs the low 4 bits of levels: of every 32, byte k has those of weight k and, above them, of weight k + 16.
fn nibbles(q: &[u8; 256], to: &mut Vec<u8>) {
    for group in q.chunks_exact(GROUP) {
        let (low, high) = group.split_at(GROUP / 2);
        to.extend(low.iter().zip(high).map(|(a, b)| a & 15 | b << 4));
    }
}

/// Packs the bits of levels from bit `above` on: byte e of the word has, at bit j · `width`, those of level 4j + e.
fn upper(levels: &[u8], above: u32, width: u32) -> [u8; 4] {
    let mut word = [0; 4];
    for (index, level) in levels.iter().enumerate() {
        word[index % 4] |= level >> above << (index as u32 / 4 * width);
    }
    word
}

/// 32 values as Q8_0: scale and int8.
fn q8_0(values: &[f32]) -> (f16, impl Iterator<Item = u8>) {
    let peak = values.iter().fold(0.0_f32, |peak, v| peak.max(v.abs()));
    let scale = f16::from_f32(peak / 127.0);
    let inverse = if scale == f16::ZERO {
        0.0
    } else {
        1.0 / scale.to_f32()
    };
    #[expect(clippy::cast_possible_truncation, reason = "rounded and within a byte")]
    let byte = move |v: &f32| ((v * inverse).round() as i8).cast_unsigned();
    (scale, values.iter().map(byte))
}
