//! Every product, type and level against plain f32 and the scalar level.

use crate::random::{Random, difference, distance, norm};
use kernels::{BlockType, Cpu, CpuLevel, Matrix, dequantise};

/// Error bound of activations in 8 bits in groups of 32, for weights of any offset.
const ROUNDING: f64 = 0.03;
/// Error bound of bf16 on both sides.
const TILES: f64 = 0.005;
/// Error bound of the order of additions.
const ORDER: f64 = 2e-6;

/// Returns true if a product runs in bf16.
fn in_bf16(cpu: &Cpu, ty: BlockType, cols: usize, m: usize) -> bool {
    // Up to the tokens of one tile, integer products are faster.
    let few = if ty.block_len() == 1 {
        Cpu::BATCH_INVARIANT_MAX
    } else {
        16
    };
    cpu.level() == CpuLevel::Amx && m > few && cols.is_multiple_of(32)
}

struct Case {
    ty: BlockType,
    rows: usize,
    cols: usize,
    bytes: Vec<u8>,
    dense: Vec<f32>,
}

impl Case {
    fn new(random: &mut Random, ty: BlockType, rows: usize, cols: usize) -> Case {
        Case::of(ty, rows, cols, random.weights(ty, rows * cols))
    }

    fn of(ty: BlockType, rows: usize, cols: usize, bytes: Vec<u8>) -> Case {
        let mut dense = vec![0.0; rows * cols];
        dequantise(ty, &bytes, &mut dense).expect("whole rows");
        Case {
            ty,
            rows,
            cols,
            bytes,
            dense,
        }
    }

    fn pack(&self, cpu: &Cpu) -> Matrix {
        cpu.pack(self.ty, self.rows, self.cols, &self.bytes)
            .expect("the shape fits")
    }

    /// The error of `got`, relative to the size of a product without cancellation: single results may
    /// be almost zero.
    fn error(&self, x: &[f32], got: &[f32], want: &[f32]) -> f64 {
        difference(got, want) / (norm(x) * norm(&self.dense) / (self.cols as f64).sqrt())
    }

    fn product(&self, x: &[f32]) -> Vec<f32> {
        x.chunks_exact(self.cols)
            .flat_map(|x| {
                self.dense.chunks_exact(self.cols).map(move |w| {
                    x.iter()
                        .zip(w)
                        .map(|(x, w)| f64::from(*x) * f64::from(*w))
                        .sum::<f64>() as f32
                })
            })
            .collect()
    }
}

fn executors() -> Vec<Cpu> {
    CpuLevel::available()
        .into_iter()
        .flat_map(|l| [Cpu::new(1, l), Cpu::new(3, l)])
        .collect()
}

#[test]
fn products_of_every_type_and_level() {
    let mut random = Random::new(1);
    let (scalar, exact) = (Cpu::new(2, CpuLevel::Scalar), Cpu::exact(2));
    let executors = executors();
    for ty in BlockType::ALL {
        for (rows, blocks) in [(1, 1), (16, 3), (33, 1), (64, 2), (109, 5)] {
            let cols = if ty.block_len() == 1 {
                blocks * 37
            } else {
                blocks * ty.block_len()
            };
            let case = Case::new(&mut random, ty, rows, cols);
            for m in [1, 2, 5, 6, 13, 35] {
                let x = random.floats(m * cols);
                let want = case.product(&x);
                let run = |cpu: &Cpu| {
                    let mut y = vec![f32::NAN; m * rows];
                    cpu.product(&x, m, &case.pack(cpu), &mut y).expect("memory");
                    y
                };
                let off = case.error(&x, &run(&exact), &want);
                assert!(off < ORDER, "{ty:?} {rows}x{cols} m {m} exact: {off}");
                let reference = run(&scalar);
                for cpu in &executors {
                    let got = run(cpu);
                    let from_f32 = case.error(&x, &got, &want);
                    let from_scalar = case.error(&x, &got, &reference);
                    let label = format!("{ty:?} {rows}x{cols} m {m} {}", cpu.level());
                    if in_bf16(cpu, ty, cols, m) {
                        assert!(from_f32 < TILES, "{label}: {from_f32} from f32");
                        continue;
                    }
                    assert!(
                        from_scalar < ORDER,
                        "{label}: {from_scalar} from the scalar level"
                    );
                    let bound = if ty.block_len() == 1 { ORDER } else { ROUNDING };
                    assert!(from_f32 < bound, "{label}: {from_f32} from f32");
                }
            }
        }
    }
}

#[test]
fn few_tokens_are_bit_identical_to_single_ones() {
    let mut random = Random::new(7);
    for ty in BlockType::ALL {
        let cols = 2 * ty.block_len().max(32);
        let case = Case::new(&mut random, ty, 45, cols);
        let x = random.floats(Cpu::BATCH_INVARIANT_MAX * cols);
        for cpu in executors() {
            let w = case.pack(&cpu);
            let run = |x: &[f32]| {
                let mut y = vec![f32::NAN; x.len() / cols * 45];
                cpu.product(x, x.len() / cols, &w, &mut y).expect("memory");
                y
            };
            let alone: Vec<f32> = x.chunks_exact(cols).flat_map(run).collect();
            for m in 2..=Cpu::BATCH_INVARIANT_MAX {
                let label = format!("{ty:?} m {m} {}", cpu.level());
                assert_eq!(run(&x[..m * cols]), alone[..m * 45], "{label}");
            }
        }
    }
}

/// The reference of AMX: both sides rounded to bf16, and sums in f64.
#[test]
fn amx_multiplies_values_rounded_to_bf16() {
    if !CpuLevel::available().contains(&CpuLevel::Amx) {
        return;
    }
    let mut random = Random::new(8);
    let rounded = |x: f32| half::bf16::from_f32(x).to_f32();
    for ty in BlockType::ALL {
        if ty == BlockType::F32 {
            continue;
        }
        let cols = 3 * ty.block_len().max(96);
        let mut case = Case::new(&mut random, ty, 71, cols);
        let x = random.floats(37 * cols);
        for threads in [1, 3] {
            let cpu = Cpu::new(threads, CpuLevel::Amx);
            let mut y = vec![f32::NAN; 37 * 71];
            cpu.product(&x, 37, &case.pack(&cpu), &mut y)
                .expect("memory");
            case.dense.iter_mut().for_each(|w| *w = rounded(*w));
            let x: Vec<f32> = x.iter().map(|x| rounded(*x)).collect();
            let off = case.error(&x, &y, &case.product(&x));
            assert!(off < 5e-5, "{ty:?}: {off}");
        }
    }
}

#[test]
fn many_tokens_cross_every_blocking_boundary() {
    let mut random = Random::new(2);
    // Tokens of several passes; columns of several K blocks in rows of several row-block groups; groups of the largest
    // size, whose epilogues run while other row blocks are multiplied.
    for (rows, cols, m) in [
        (40, 768, 547),
        (150, 2304, 31),
        (1100, 768, 70),
        (1100, 2304, 40),
    ] {
        let case = Case::new(&mut random, BlockType::Q4K, rows, cols);
        let x = random.floats(m * cols);
        let want = case.product(&x);
        for cpu in executors() {
            let mut y = vec![f32::NAN; m * rows];
            cpu.product(&x, m, &case.pack(&cpu), &mut y)
                .expect("memory");
            let off = case.error(&x, &y, &want);
            assert!(off < ROUNDING, "{}: {off}", cpu.level());
        }
    }
}

#[test]
fn the_largest_integers_do_not_overflow() {
    let mut random = Random::new(10);
    let (rows, cols) = (20, 512);
    for ty in BlockType::ALL {
        let bytes = match ty {
            BlockType::F32 | BlockType::F16 | BlockType::BF16 => continue,
            _ => random.largest_weights(ty, rows * cols),
        };
        let case = Case::of(ty, rows, cols, bytes);
        for cpu in executors() {
            for (m, sign) in [(1, 1.0), (13, 1.0), (13, -1.0)] {
                // These quantise to 127 without error.
                let x = vec![sign; m * cols];
                let mut y = vec![f32::NAN; m * rows];
                cpu.product(&x, m, &case.pack(&cpu), &mut y)
                    .expect("memory");
                let off = case.error(&x, &y, &case.product(&x));
                assert!(off < 1e-5, "{ty:?} m {m} {}: {off}", cpu.level());
            }
        }
    }
}

/// The other end of the table, with the largest sub-scale; then sub-scales and factors of any value. NaN stays within
/// its row.
#[test]
fn iq4_blocks_of_any_bytes() {
    let mut random = Random::new(11);
    let (rows, cols) = (20, 512);
    for ty in [BlockType::IQ4NL, BlockType::IQ4XS] {
        let row_bytes = ty.row_bytes(cols).expect("whole blocks");
        let mut bytes = vec![0; rows * row_bytes];
        for block in bytes.chunks_exact_mut(ty.block_bytes()) {
            block[..2].copy_from_slice(&half::f16::from_f32(1.0 / 64.0).to_le_bytes());
        }
        let lowest = Case::of(ty, rows, cols, bytes.clone());
        let mut any = bytes;
        for block in any.chunks_exact_mut(ty.block_bytes()) {
            block[2..].fill_with(|| random.bits() as u8);
        }
        // NaN, infinity, zero, -0, the largest number, and the smallest.
        for (row, d) in [0x7e00_u16, 0x7c00, 0, 0x8000, 0x7bff, 1]
            .into_iter()
            .enumerate()
        {
            any[row * row_bytes..][..2].copy_from_slice(&d.to_le_bytes());
        }
        let any = Case::of(ty, rows, cols, any);
        assert!(
            any.dense[0].is_nan() && !any.dense[cols].is_finite(),
            "{ty:?}"
        );
        for cpu in executors() {
            for m in [1, 13, 35] {
                let x = vec![1.0; m * cols];
                let run = |case: &Case| {
                    let mut y = vec![f32::NAN; m * rows];
                    cpu.product(&x, m, &case.pack(&cpu), &mut y)
                        .expect("memory");
                    y
                };
                let off = lowest.error(&x, &run(&lowest), &lowest.product(&x));
                assert!(off < 1e-5, "{ty:?} m {m} {}: {off}", cpu.level());
                for y in run(&any).chunks_exact(rows) {
                    let label = format!("{ty:?} m {m} {}: {y:?}", cpu.level());
                    assert!(!y[0].is_finite() && !y[1].is_finite(), "{label}");
                    assert!(y[2..].iter().all(|y| y.is_finite()), "{label}");
                }
            }
        }
    }
}

#[test]
fn fused_products_equal_single_ones() {
    let mut random = Random::new(3);
    let q = Case::new(&mut random, BlockType::Q4K, 70, 256);
    // Its activations have finer scales.
    let k = Case::new(&mut random, BlockType::Q8_0, 24, 256);
    let v = Case::new(&mut random, BlockType::F16, 24, 256);
    for cpu in executors() {
        for m in [1, 9, 30] {
            let x = random.floats(m * 256);
            let [wq, wk, wv] = [&q, &k, &v].map(|case| case.pack(&cpu));
            let part = |w: &Matrix| {
                let mut y = vec![f32::NAN; m * w.rows()];
                cpu.product(&x, m, w, &mut y).expect("memory");
                y
            };
            let mut y = [70, 24, 24].map(|rows| vec![f32::NAN; m * rows]);
            let [yq, yk, yv] = &mut y;
            cpu.qkv(&x, m, [&wq, &wk, &wv], [yq, yk, yv])
                .expect("memory");
            for (y, w) in y.iter().zip([&wq, &wk, &wv]) {
                assert_eq!(*y, part(w), "{}", cpu.level());
            }

            let mut sum = vec![0.5; m * 70];
            cpu.product_add(&x, m, &wq, &mut sum).expect("memory");
            let want: Vec<f32> = part(&wq).iter().map(|y| 0.5 + y).collect();
            if in_bf16(&cpu, BlockType::Q4K, 256, m) {
                // Its sums begin with the values of the residual stream.
                let off = distance(&sum, &want);
                assert!(off < 1e-6, "{off}");
            } else {
                assert_eq!(sum, want, "{}", cpu.level());
            }
        }
    }
}

#[test]
fn a_feed_forward_layer_equals_its_products() {
    let mut random = Random::new(9);
    // Hidden widths of whole row blocks, and one that tiles do not support; gate and up of two types, whose activations
    // have different granularity.
    for (cols, hidden, rows, up_type) in [
        (256, 288, 70, BlockType::Q4K),
        (256, 2304, 64, BlockType::Q4K),
        (256, 84, 40, BlockType::Q4K),
        (256, 64, 40, BlockType::Q8_0),
    ] {
        let ty = if hidden % 32 == 0 {
            BlockType::Q8_0
        } else {
            BlockType::F16
        };
        let gate = Case::new(&mut random, BlockType::Q4K, hidden, cols);
        let up = Case::new(&mut random, up_type, hidden, cols);
        let down = Case::new(&mut random, ty, rows, hidden);
        for cpu in executors() {
            let [gate, up, down] = [&gate, &up, &down].map(|case| case.pack(&cpu));
            // More tokens than a pass, if the shape is cheap.
            let many = if hidden == 288 { 300 } else { 47 };
            for m in [1, 9, many] {
                let x = random.floats(m * cols);
                let part = |x: &[f32], w: &Matrix| {
                    let mut y = vec![f32::NAN; m * w.rows()];
                    cpu.product(x, m, w, &mut y).expect("memory");
                    y
                };
                let silu = |g: f32| g / (1.0 + (-g).exp());
                let gated = part(&x, &gate).into_iter().zip(part(&x, &up));
                let gated: Vec<f32> = gated.map(|(g, u)| silu(g) * u).collect();
                let want: Vec<f32> = part(&gated, &down).iter().map(|y| 0.5 + y).collect();
                let mut got = vec![0.5; m * rows];
                cpu.feed_forward(&x, m, [&gate, &up, &down], &mut got)
                    .expect("memory");
                let off = distance(&got, &want);
                // The two implementations of SiLU may quantise to neighbouring integers.
                assert!(off < 1e-3, "{} {hidden} m {m}: {off}", cpu.level());
            }
        }
    }
}

#[test]
fn unpacked_rows_are_the_weights() {
    let mut random = Random::new(4);
    let executors = executors();
    for ty in BlockType::ALL {
        let case = Case::new(&mut random, ty, 21, 512);
        for cpu in &executors {
            let packed = case.pack(cpu);
            assert_eq!(
                (packed.rows(), packed.cols(), packed.block_type()),
                (21, 512, ty)
            );
            let mut row = vec![0.0; 512];
            for (r, want) in case.dense.chunks_exact(512).enumerate() {
                packed.row(r, &mut row);
                assert_eq!(row, want, "{ty:?} row {r} {}", cpu.level());
            }
        }
    }
}

#[test]
fn all_zero_activations_and_weights_give_zero() {
    for cpu in executors() {
        for ty in BlockType::ALL {
            let w = cpu.pack(
                ty,
                32,
                256,
                &vec![0; ty.row_bytes(256).expect("whole") * 32],
            );
            let mut y = vec![f32::NAN; 32];
            cpu.product(&[0.0; 256], 1, &w.expect("the shape fits"), &mut y)
                .expect("memory");
            assert!(y.iter().all(|y| *y == 0.0), "{ty:?} {}", cpu.level());
        }
    }
}

#[test]
fn impossible_shapes_are_errors() {
    let cpu = Cpu::new(1, CpuLevel::Scalar);
    for ty in BlockType::ALL {
        let bytes = vec![0; ty.row_bytes(256).expect("whole") * 2];
        assert!(cpu.pack(ty, 2, 256, &bytes).is_ok());
        assert!(cpu.pack(ty, 3, 256, &bytes).is_err());
        assert!(cpu.pack(ty, 2, 256, &bytes[1..]).is_err());
        assert!(cpu.pack(ty, 0, 256, &[]).is_err());
        assert!(cpu.pack(ty, 2, 0, &[]).is_err());
        assert!(cpu.pack(ty, usize::MAX, 256, &bytes).is_err());
        assert!(cpu.pack(ty, 2, usize::MAX / 256 * 256, &bytes).is_err());
        if ty.block_len() > 1 {
            assert!(cpu.pack(ty, 2, 255, &bytes).is_err());
        }
    }
}
