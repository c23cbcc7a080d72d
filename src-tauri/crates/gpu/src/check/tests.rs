//! Every product in every format against f64 arithmetic, on any Vulkan device.

use std::sync::LazyLock;

use half::f16;
use kernels::{BlockType, Stored};

use super::{KernelVariant, ProductCheck};
use crate::device::adapter::Allowed;
use crate::exec::wgpu_executor::Wgpu;
use testing::or_skip;

/// One device for all tests, so that its kernels are compiled once; without a device the tests are skipped.
fn device() -> Option<Wgpu> {
    const ALLOWED: Allowed = Allowed {
        software: true,
        matrices: true,
    };
    static DEVICE: LazyLock<Option<Wgpu>> = LazyLock::new(|| Wgpu::open(None, ALLOWED).ok());
    or_skip(DEVICE.clone())
}

/// The xorshift generator.
struct Xorshift(u64);

impl Xorshift {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn float(&mut self) -> f32 {
        (self.next() % 20_001) as f32 / 10_000.0 - 1.0
    }

    /// Blocks of random bits, with scales of a plausible size.
    fn blocks(&mut self, ty: BlockType, values: usize) -> Vec<u8> {
        let mut bytes = vec![0; ty.row_bytes(values).expect("whole blocks")];
        for block in bytes.chunks_exact_mut(ty.block_bytes()) {
            block.fill_with(|| self.next().to_le_bytes()[3]);
            let scales: &[usize] = match ty {
                BlockType::F16 | BlockType::BF16 | BlockType::F32 => &[],
                BlockType::Q4_1 | BlockType::Q5_1 | BlockType::Q4K | BlockType::Q5K => &[0, 2],
                BlockType::Q2K => &[80, 82],
                BlockType::Q3K => &[108],
                BlockType::Q6K => &[208],
                _ => &[0],
            };
            for &at in scales {
                let scale = f16::from_f32(0.001 + self.float().abs() * 0.01);
                block[at..at + 2].copy_from_slice(&scale.to_le_bytes());
            }
            let value = self.float();
            match ty {
                BlockType::F32 => block.copy_from_slice(&value.to_le_bytes()),
                BlockType::F16 => block.copy_from_slice(&f16::from_f32(value).to_le_bytes()),
                BlockType::BF16 => block.copy_from_slice(&value.to_le_bytes()[2..]),
                _ => {}
            }
        }
        bytes
    }
}

/// The relative error of a product of norm(x) with `rows` rows of random weights.
fn error_of(
    exec: &mut Wgpu,
    ty: BlockType,
    rows: usize,
    cols: usize,
    variant: KernelVariant,
) -> f64 {
    let stored = Xorshift((rows * cols) as u64 | 1).blocks(ty, rows * cols);
    let product = ProductCheck {
        ty,
        rows,
        cols,
        stored: Stored::Memory(&stored),
    };
    product
        .relative_error(exec, variant)
        .expect("it is computed")
}

#[test]
fn products_on_the_gpu_are_right_in_every_format() {
    let Some(mut exec) = device() else { return };
    for ty in BlockType::ALL {
        let format = crate::WeightFormat::of(ty);
        for (rows, cols) in [(5, 256), (33, 256), (70, 768)] {
            for (tokens, floats, matrices) in [
                (1, true, false),
                (1, false, false),
                (5, true, false),
                (70, true, false),
                (70, false, false),
                (70, false, true),
            ] {
                let variant = KernelVariant {
                    tokens,
                    floats,
                    matrices,
                };
                let found = error_of(&mut exec, ty, rows, cols, variant);
                let bound = if floats && format.keeps(ty) {
                    1e-5
                } else {
                    0.03
                };
                assert!(
                    found < bound,
                    "{}, {rows} × {cols}, {variant:?}: {found}",
                    ty.name()
                );
            }
        }
    }
}

/// Shapes and numbers of tokens beyond one block of each kernel.
#[test]
fn products_of_several_blocks_are_right() {
    let Some(mut exec) = device() else { return };
    for ty in [BlockType::Q4K, BlockType::Q6K] {
        for (rows, cols) in [(5, 4352), (32_770, 256), (131, 256)] {
            for (tokens, matrices) in [(1, false), (130, false), (130, true)] {
                let variant = KernelVariant {
                    tokens,
                    floats: false,
                    matrices,
                };
                let found = error_of(&mut exec, ty, rows, cols, variant);
                assert!(
                    found < 0.03,
                    "{}, {rows} × {cols}, {variant:?}: {found}",
                    ty.name()
                );
            }
        }
    }
}
