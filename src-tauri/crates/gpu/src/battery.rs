//! Every product in every format against plain f64 arithmetic, on whatever Vulkan there is.

use std::sync::LazyLock;

use half::f16;
use kernels::{BlockType, dequantise};

use crate::exec::{Dispatch, Executor};
use crate::model::Shape;
use crate::products::{self, After, Before, Rows};
use crate::weights::load_matrix;
use crate::wgpu_exec::Wgpu;

/// One device for all tests, so that its kernels are compiled once.
fn device() -> Option<Wgpu> {
    static DEVICE: LazyLock<Option<Wgpu>> = LazyLock::new(|| Wgpu::open(None, true).ok());
    DEVICE.clone()
}

/// xorshift: numbers that look random and are the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn float(&mut self) -> f32 {
        (self.next() % 20_001) as f32 / 10_000.0 - 1.0
    }

    /// Blocks of any bits, but with scales of a weight's size.
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

fn shape(embedding: usize) -> Shape {
    Shape {
        layers: 1,
        embedding,
        feed_forward: 256,
        heads: 1,
        kv_heads: 1,
        head_dim: 64,
        vocab: 1,
        eps: 1e-6,
        rotary: 64,
        rotated: vec![true],
    }
}

/// The relative error of a product of norm(x) with `rows` rows, for one token.
fn error_of(exec: &mut Wgpu, ty: BlockType, rows: usize, cols: usize, dot4: bool) -> f64 {
    let mut random = Random((rows * cols) as u64 | 1);
    let stored = random.blocks(ty, rows * cols);
    let x: Vec<f32> = (0..cols).map(|_| 3.0 * random.float()).collect();
    let norm: Vec<f32> = (0..cols).map(|_| 1.0 + 0.5 * random.float()).collect();
    let matrix = load_matrix(exec, ty, rows, cols, &stored).expect("it is loaded");
    let rows_of = [Rows::whole(&matrix)];
    let after = After::Rows {
        stride: rows,
        first: 0,
        add: false,
    };
    let (kernel, groups) = products::product(&shape(cols), &rows_of, dot4, 1, Before::Norm, after);
    let mut buffer = |values: &[f32]| {
        let buffer = exec.buffer("x", 4 * values.len() as u64).expect("room");
        exec.write(&buffer, 0, bytemuck::cast_slice(values))
            .expect("it is written");
        buffer
    };
    let (source, weight) = (buffer(&x), buffer(&norm));
    // What is not written stays no number.
    let y = buffer(&vec![f32::NAN; rows]);
    let buffers = [rows_of[0].buffer(), &source, &weight, &y];
    let bound = exec.bind(&kernel, &buffers).expect("it compiles");
    let dispatch = Dispatch {
        bound: &bound,
        groups: [groups as u32, 1, 1],
        step: [0; 6],
    };
    exec.submit(&[dispatch], None).expect("it runs");
    let ours = exec.read(&y, 4 * rows as u64).expect("it is read");
    let ours: Vec<f32> = bytemuck::pod_collect_to_vec(&ours);

    let mut weights = vec![0.0; rows * cols];
    dequantise(ty, &stored, &mut weights).expect("whole blocks");
    let mean = x.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / cols as f64;
    let inverse = 1.0 / (mean + 1e-6).sqrt();
    let (mut error, mut size) = (0.0, 0.0);
    for (row, &ours) in weights.chunks_exact(cols).zip(&ours) {
        let exact: f64 = row
            .iter()
            .zip(&x)
            .zip(&norm)
            .map(|((&w, &x), &n)| f64::from(w) * f64::from(x) * f64::from(n) * inverse)
            .sum();
        error += (f64::from(ours) - exact).powi(2);
        size += exact.powi(2);
    }
    (error / size).sqrt()
}

#[test]
fn products_on_the_gpu_are_right_in_every_format() {
    let Some(mut exec) = device() else { return };
    for ty in BlockType::ALL {
        let kept = crate::Format::of(ty).keeps(ty);
        for (rows, cols) in [(5, 256), (33, 256), (70, 768)] {
            let found = error_of(&mut exec, ty, rows, cols, false);
            let bound = if kept { 1e-5 } else { 0.02 };
            assert!(found < bound, "{}, {rows} × {cols}: {found}", ty.name());
            if !crate::Format::of(ty).is_float() {
                let found = error_of(&mut exec, ty, rows, cols, true);
                assert!(
                    found < 0.03,
                    "{} in integers, {rows} × {cols}: {found}",
                    ty.name()
                );
            }
        }
    }
}
