//! Seeded random weights and activations.

use kernels::BlockType;

/// A small generator (xorshift64*), so that every run sees the same numbers.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Uniform in −1..1.
    pub fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    /// Roughly normal, with an occasional outlier, like real activations.
    pub fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n)
            .map(|_| {
                let x = self.unit() + self.unit() + self.unit();
                if self.bits().is_multiple_of(97) {
                    x * 8.0
                } else {
                    x
                }
            })
            .collect()
    }

    /// Bytes of `values` random weights: any integers, moderate f16 scales.
    pub fn weights(&mut self, ty: BlockType, values: usize) -> Vec<u8> {
        self.weights_of(ty, values, |random| random.bits() as u8)
    }

    /// Weights with the largest integers of the type.
    pub fn largest_weights(&mut self, ty: BlockType, values: usize) -> Vec<u8> {
        // The largest signed byte is 127; the largest unsigned bits are all ones.
        let most = if ty == BlockType::Q8_0 { 127 } else { 255 };
        self.weights_of(ty, values, |_| most)
    }

    fn weights_of(
        &mut self,
        ty: BlockType,
        values: usize,
        byte: impl Fn(&mut Self) -> u8,
    ) -> Vec<u8> {
        let scales_at: &[usize] = match ty {
            BlockType::F32 => {
                return (0..values)
                    .flat_map(|_| self.unit().to_le_bytes())
                    .collect();
            }
            BlockType::F16 => {
                return (0..values)
                    .flat_map(|_| half::f16::from_f32(self.unit()).to_le_bytes())
                    .collect();
            }
            BlockType::BF16 => {
                return (0..values)
                    .flat_map(|_| half::bf16::from_f32(self.unit()).to_le_bytes())
                    .collect();
            }
            BlockType::Q4_1 | BlockType::Q5_1 | BlockType::Q4K | BlockType::Q5K => &[0, 2],
            BlockType::Q4_0
            | BlockType::Q5_0
            | BlockType::Q8_0
            | BlockType::IQ4NL
            | BlockType::IQ4XS => &[0],
            BlockType::Q2K => &[80, 82],
            BlockType::Q3K => &[108],
            BlockType::Q6K => &[208],
        };
        let mut bytes = vec![0_u8; ty.row_bytes(values).expect("whole blocks")];
        for block in bytes.chunks_exact_mut(ty.block_bytes()) {
            for b in block.iter_mut() {
                *b = byte(self);
            }
            for &at in scales_at {
                let scale = half::f16::from_f32(self.unit() / 64.0);
                block[at..at + 2].copy_from_slice(&scale.to_le_bytes());
            }
        }
        bytes
    }
}

/// `‖a − b‖ / ‖b‖`.
pub fn distance(a: &[f32], b: &[f32]) -> f64 {
    let size = norm(b);
    assert!(size > 0.0, "the reference is not zero");
    difference(a, b) / size
}

/// `‖a − b‖`.
pub fn difference(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let off: Vec<f32> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let off = norm(&off);
    assert!(off.is_finite(), "the results are finite");
    off
}

/// `‖a‖`.
pub fn norm(a: &[f32]) -> f64 {
    a.iter().map(|a| f64::from(*a).powi(2)).sum::<f64>().sqrt()
}
