//! The ggml block formats.
//!
//! Every quantised format stores small unsigned integers in groups of 16 or 32, with a scale and in some formats a minimum
//! for each group. In IQ4_NL and IQ4_XS the integer is a place in a fixed table of signed bytes. [`Levels`] is a block
//! unpacked to integers: dequantisation starts from it, and the tests of packing compare with it.

use half::f16;

/// Element types of a tensor, with ggml's numbers and layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are ggml's own")]
pub enum BlockType {
    F32,
    F16,
    BF16,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q2K,
    Q3K,
    Q4K,
    Q5K,
    Q6K,
    IQ4NL,
    IQ4XS,
}

/// The values of the 16 nibbles of IQ4_NL and IQ4_XS, with 128 added.
pub(crate) const IQ4_VALUES: [u8; 16] = {
    let signed: [i8; 16] = [
        -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
    ];
    let mut values = [0; 16];
    let mut i = 0;
    while i < 16 {
        values[i] = signed[i].cast_unsigned() ^ 0x80;
        i += 1;
    }
    values
};

impl BlockType {
    /// Every type, in ggml's order.
    pub const ALL: [BlockType; 15] = [
        BlockType::F32,
        BlockType::F16,
        BlockType::Q4_0,
        BlockType::Q4_1,
        BlockType::Q5_0,
        BlockType::Q5_1,
        BlockType::Q8_0,
        BlockType::Q2K,
        BlockType::Q3K,
        BlockType::Q4K,
        BlockType::Q5K,
        BlockType::Q6K,
        BlockType::IQ4NL,
        BlockType::IQ4XS,
        BlockType::BF16,
    ];

    /// The type with a GGUF file's number `id`, or `None` for a type that is not supported.
    pub fn from_ggml(id: u32) -> Option<Self> {
        Some(match id {
            0 => BlockType::F32,
            1 => BlockType::F16,
            2 => BlockType::Q4_0,
            3 => BlockType::Q4_1,
            6 => BlockType::Q5_0,
            7 => BlockType::Q5_1,
            8 => BlockType::Q8_0,
            10 => BlockType::Q2K,
            11 => BlockType::Q3K,
            12 => BlockType::Q4K,
            13 => BlockType::Q5K,
            14 => BlockType::Q6K,
            20 => BlockType::IQ4NL,
            23 => BlockType::IQ4XS,
            30 => BlockType::BF16,
            _ => return None,
        })
    }

    /// The number of this type in a GGUF file.
    pub fn ggml_id(self) -> u32 {
        match self {
            BlockType::F32 => 0,
            BlockType::F16 => 1,
            BlockType::Q4_0 => 2,
            BlockType::Q4_1 => 3,
            BlockType::Q5_0 => 6,
            BlockType::Q5_1 => 7,
            BlockType::Q8_0 => 8,
            BlockType::Q2K => 10,
            BlockType::Q3K => 11,
            BlockType::Q4K => 12,
            BlockType::Q5K => 13,
            BlockType::Q6K => 14,
            BlockType::IQ4NL => 20,
            BlockType::IQ4XS => 23,
            BlockType::BF16 => 30,
        }
    }

    /// Values in a block.
    pub const fn block_len(self) -> usize {
        match self {
            BlockType::F32 | BlockType::F16 | BlockType::BF16 => 1,
            BlockType::Q4_0
            | BlockType::Q4_1
            | BlockType::Q5_0
            | BlockType::Q5_1
            | BlockType::Q8_0
            | BlockType::IQ4NL => 32,
            BlockType::Q2K
            | BlockType::Q3K
            | BlockType::Q4K
            | BlockType::Q5K
            | BlockType::Q6K
            | BlockType::IQ4XS => 256,
        }
    }

    /// Bytes of a block.
    pub fn block_bytes(self) -> usize {
        match self {
            BlockType::F32 => 4,
            BlockType::F16 | BlockType::BF16 => 2,
            BlockType::Q4_0 | BlockType::IQ4NL => 18,
            BlockType::Q4_1 => 20,
            BlockType::Q5_0 => 22,
            BlockType::Q5_1 => 24,
            BlockType::Q8_0 => 34,
            BlockType::Q2K => 84,
            BlockType::Q3K => 110,
            BlockType::IQ4XS => 136,
            BlockType::Q4K => 144,
            BlockType::Q5K => 176,
            BlockType::Q6K => 210,
        }
    }

    /// The name in ggml.
    pub fn name(self) -> &'static str {
        match self {
            BlockType::F32 => "F32",
            BlockType::F16 => "F16",
            BlockType::BF16 => "BF16",
            BlockType::Q4_0 => "Q4_0",
            BlockType::Q4_1 => "Q4_1",
            BlockType::Q5_0 => "Q5_0",
            BlockType::Q5_1 => "Q5_1",
            BlockType::Q8_0 => "Q8_0",
            BlockType::Q2K => "Q2_K",
            BlockType::Q3K => "Q3_K",
            BlockType::Q4K => "Q4_K",
            BlockType::Q5K => "Q5_K",
            BlockType::Q6K => "Q6_K",
            BlockType::IQ4NL => "IQ4_NL",
            BlockType::IQ4XS => "IQ4_XS",
        }
    }

    /// Bytes of a row of `cols` values, or `None` if it is not whole blocks or overflows.
    pub fn row_bytes(self, cols: usize) -> Option<usize> {
        if !cols.is_multiple_of(self.block_len()) {
            return None;
        }
        (cols / self.block_len()).checked_mul(self.block_bytes())
    }

    /// Values that share a scale, in a quantised type.
    pub(crate) const fn group(self) -> usize {
        match self {
            BlockType::Q2K | BlockType::Q3K | BlockType::Q6K => 16,
            _ => 32,
        }
    }

    /// The integer that stands for zero, in a quantised type.
    pub(crate) const fn zero(self) -> u8 {
        match self {
            BlockType::Q3K => 4,
            BlockType::Q4_0 => 8,
            BlockType::Q5_0 => 16,
            BlockType::Q6K => 32,
            BlockType::Q8_0 | BlockType::IQ4NL | BlockType::IQ4XS => 128,
            _ => 0,
        }
    }
}

/// One quantised block, unpacked without loss. In group `i / group`,
/// `w[i] = d · scale · (q[i] − zero) − dmin · min`.
pub struct Levels {
    /// The integers, as many as the block has values.
    pub q: [u8; 256],
    /// Factor of all scales.
    pub d: f16,
    /// Factor of all minima.
    pub dmin: f16,
    /// A scale per group.
    pub scale: [i8; 16],
    /// A minimum per group.
    pub min: [u8; 16],
}

impl Default for Levels {
    fn default() -> Self {
        Levels::new()
    }
}

impl Levels {
    /// An empty block.
    pub fn new() -> Self {
        Levels {
            q: [0; 256],
            d: f16::ZERO,
            dmin: f16::ZERO,
            scale: [1; 16],
            min: [0; 16],
        }
    }

    /// Unpacks one block; `b` is exactly `ty.block_bytes()` long and `ty` is quantised.
    #[inline(always)]
    pub fn read(&mut self, ty: BlockType, b: &[u8]) {
        debug_assert_eq!(b.len(), ty.block_bytes());
        match ty {
            BlockType::Q4_0 => {
                self.d = half(b, 0);
                self.nibbles_32(&b[2..18]);
            }
            BlockType::Q4_1 => {
                self.d_and_m(b);
                self.nibbles_32(&b[4..20]);
            }
            BlockType::Q5_0 => {
                self.d = half(b, 0);
                self.nibbles_32(&b[6..22]);
                self.fifth_bit_32(&b[2..6]);
            }
            BlockType::Q5_1 => {
                self.d_and_m(b);
                self.nibbles_32(&b[8..24]);
                self.fifth_bit_32(&b[4..8]);
            }
            BlockType::Q8_0 => {
                self.d = half(b, 0);
                for (q, &v) in self.q.iter_mut().zip(&b[2..34]) {
                    *q = v ^ 0x80;
                }
            }
            BlockType::Q2K => {
                (self.d, self.dmin) = (half(b, 80), half(b, 82));
                for g in 0..16 {
                    self.scale[g] = (b[g] & 15).cast_signed();
                    self.min[g] = b[g] >> 4;
                }
                self.crumbs_k(&b[16..80]);
            }
            BlockType::Q3K => {
                self.d = half(b, 108);
                self.scale = scales_k3(&b[96..108]);
                self.crumbs_k(&b[32..96]);
                for (i, q) in self.q.iter_mut().enumerate() {
                    *q |= (b[i % 32] >> (i / 32) & 1) << 2;
                }
            }
            BlockType::Q4K => {
                self.scales_k4(b);
                self.nibbles_k4(&b[16..144]);
            }
            BlockType::Q5K => {
                self.scales_k4(b);
                self.nibbles_k4(&b[48..176]);
                for (g, q) in self.q.chunks_exact_mut(32).enumerate() {
                    for (q, bits) in q.iter_mut().zip(&b[16..48]) {
                        *q |= (bits >> g & 1) << 4;
                    }
                }
            }
            BlockType::Q6K => {
                self.d = half(b, 208);
                for g in 0..16 {
                    self.scale[g] = b[192 + g].cast_signed();
                }
                self.sixes_k(b);
            }
            BlockType::IQ4NL => {
                self.d = half(b, 0);
                self.nibbles_32(&b[2..18]);
                self.look_up();
            }
            BlockType::IQ4XS => {
                self.d = half(b, 0);
                self.scales_x4(&b[2..8]);
                for (g, b) in b[8..136].chunks_exact(16).enumerate() {
                    for (i, &v) in b.iter().enumerate() {
                        self.q[g * 32 + i] = v & 15;
                        self.q[g * 32 + i + 16] = v >> 4;
                    }
                }
                self.look_up();
            }
            BlockType::F32 | BlockType::F16 | BlockType::BF16 => {
                debug_assert!(false, "floats have no levels");
            }
        }
    }

    /// Q4_1 and Q5_1 add an f16 minimum; the other types subtract one.
    #[inline(always)]
    fn d_and_m(&mut self, b: &[u8]) {
        (self.d, self.dmin) = (half(b, 0), -half(b, 2));
        self.min[0] = 1;
    }

    #[inline(always)]
    fn nibbles_32(&mut self, b: &[u8]) {
        for (i, &v) in b.iter().enumerate() {
            self.q[i] = v & 15;
            self.q[i + 16] = v >> 4;
        }
    }

    #[inline(always)]
    fn fifth_bit_32(&mut self, b: &[u8]) {
        let bits = u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        for (i, q) in self.q[..32].iter_mut().enumerate() {
            *q |= ((bits >> i & 1) << 4) as u8;
        }
    }

    /// Q4_K and Q5_K: f16 d, f16 dmin, then eight 6-bit scales and eight 6-bit minima in 12 bytes.
    #[inline(always)]
    fn scales_k4(&mut self, b: &[u8]) {
        (self.d, self.dmin) = (half(b, 0), half(b, 2));
        let b = &b[4..16];
        for g in 0..4 {
            self.scale[g] = (b[g] & 63).cast_signed();
            self.min[g] = b[g + 4] & 63;
            self.scale[g + 4] = (b[g + 8] & 15 | (b[g] >> 6) << 4).cast_signed();
            self.min[g + 4] = b[g + 8] >> 4 | (b[g + 4] >> 6) << 4;
        }
    }

    #[inline(always)]
    fn nibbles_k4(&mut self, b: &[u8]) {
        for (q, b) in self.q.chunks_exact_mut(64).zip(b.chunks_exact(32)) {
            let (low, high) = q.split_at_mut(32);
            for ((low, high), b) in low.iter_mut().zip(high).zip(b) {
                (*low, *high) = (b & 15, b >> 4);
            }
        }
    }

    /// IQ4_XS: the two high bits of eight 6-bit scales in 2 bytes, then their nibbles in 4, with 32 added.
    #[inline(always)]
    fn scales_x4(&mut self, b: &[u8]) {
        for g in 0..8 {
            let (low, high) = (
                b[2 + g / 2] >> (g % 2 * 4) & 15,
                b[g / 4] >> (g % 4 * 2) & 3,
            );
            self.scale[g] = (low | high << 4).cast_signed() - 32;
        }
    }

    /// Maps nibbles to their values in the table.
    #[inline(always)]
    fn look_up(&mut self) {
        for q in &mut self.q {
            *q = IQ4_VALUES[usize::from(*q & 15)];
        }
    }

    /// The 2-bit values of Q2_K and Q3_K: 128 values in 32 bytes, 32 by 32.
    #[inline(always)]
    fn crumbs_k(&mut self, b: &[u8]) {
        for (i, q) in self.q.chunks_exact_mut(32).enumerate() {
            for (q, b) in q.iter_mut().zip(&b[i / 4 * 32..]) {
                *q = b >> (i % 4 * 2) & 3;
            }
        }
    }

    #[inline(always)]
    fn sixes_k(&mut self, b: &[u8]) {
        for (h, q) in self.q.chunks_exact_mut(128).enumerate() {
            let (low, high) = (&b[h * 64..h * 64 + 64], &b[128 + h * 32..128 + h * 32 + 32]);
            for i in 0..32 {
                q[i] = low[i] & 15 | (high[i] & 3) << 4;
                q[i + 32] = low[i + 32] & 15 | (high[i] >> 2 & 3) << 4;
                q[i + 64] = low[i] >> 4 | (high[i] >> 4 & 3) << 4;
                q[i + 96] = low[i + 32] >> 4 | (high[i] >> 6) << 4;
            }
        }
    }
}

/// The sixteen 6-bit scales of a Q3_K block.
fn scales_k3(b: &[u8]) -> [i8; 16] {
    std::array::from_fn(|g| {
        let low = if g < 8 { b[g] & 15 } else { b[g - 8] >> 4 };
        (low | (b[8 + g % 4] >> (g / 4 * 2) & 3) << 4).cast_signed() - 32
    })
}

/// The little-endian f16 at byte `at`.
fn half(b: &[u8], at: usize) -> f16 {
    f16::from_le_bytes([b[at], b[at + 1]])
}
