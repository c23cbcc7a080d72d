//! Every product, type and level against plain f32 and against the scalar twin.

use crate::random::{Random, difference, distance, norm};
use kernels::{BlockType, Cpu, CpuLevel, Matrix, dequantise};

/// What rounding activations to 8 bits in groups of 32 may cost, for weights of any offset.
const ROUNDING: f64 = 0.03;
/// What the order of additions may cost.
const ORDER: f64 = 2e-6;

struct Case {
    ty: BlockType,
    rows: usize,
    cols: usize,
    bytes: Vec<u8>,
    dense: Vec<f32>,
}

impl Case {
    fn new(random: &mut Random, ty: BlockType, rows: usize, cols: usize) -> Case {
        let bytes = random.weights(ty, rows * cols);
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

    /// How far `got` is from `want`, in terms of what a product of this size comes to when
    /// nothing cancels: single results may happen to be almost zero.
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
            for m in [1, 2, 5, 6, 13] {
                let x = random.floats(m * cols);
                let want = case.product(&x);
                let run = |cpu: &Cpu| {
                    let mut y = vec![f32::NAN; m * rows];
                    cpu.product(&x, m, &case.pack(cpu), &mut y);
                    y
                };
                let off = case.error(&x, &run(&exact), &want);
                assert!(off < ORDER, "{ty:?} {rows}x{cols} m {m} exact: {off}");
                let twin = run(&scalar);
                for cpu in &executors {
                    let got = run(cpu);
                    let from_f32 = case.error(&x, &got, &want);
                    let from_twin = case.error(&x, &got, &twin);
                    let label = format!("{ty:?} {rows}x{cols} m {m} {}", cpu.level());
                    assert!(
                        from_twin < ORDER,
                        "{label}: {from_twin} from the scalar twin"
                    );
                    let bound = if ty.block_len() == 1 { ORDER } else { ROUNDING };
                    assert!(from_f32 < bound, "{label}: {from_f32} from f32");
                }
            }
        }
    }
}

#[test]
fn many_tokens_cross_every_blocking_boundary() {
    let mut random = Random::new(2);
    let case = Case::new(&mut random, BlockType::Q4K, 40, 768);
    let m = 520;
    let x = random.floats(m * 768);
    let want = case.product(&x);
    for cpu in executors() {
        let mut y = vec![f32::NAN; m * 40];
        cpu.product(&x, m, &case.pack(&cpu), &mut y);
        let off = case.error(&x, &y, &want);
        assert!(off < ROUNDING, "{}: {off}", cpu.level());
    }
}

#[test]
fn fused_products_are_their_parts() {
    let mut random = Random::new(3);
    let q = Case::new(&mut random, BlockType::Q4K, 70, 256);
    let k = Case::new(&mut random, BlockType::Q6K, 24, 256);
    let v = Case::new(&mut random, BlockType::F16, 24, 256);
    let up = Case::new(&mut random, BlockType::Q4K, 70, 256);
    for cpu in executors() {
        for m in [1, 9] {
            let x = random.floats(m * 256);
            let [wq, wk, wv, wu] = [&q, &k, &v, &up].map(|case| case.pack(&cpu));
            let part = |w: &Matrix| {
                let mut y = vec![f32::NAN; m * w.rows()];
                cpu.product(&x, m, w, &mut y);
                y
            };
            let mut y = [70, 24, 24].map(|rows| vec![f32::NAN; m * rows]);
            let [yq, yk, yv] = &mut y;
            cpu.qkv(&x, m, [&wq, &wk, &wv], [yq, yk, yv]);
            for (y, w) in y.iter().zip([&wq, &wk, &wv]) {
                assert_eq!(*y, part(w), "{}", cpu.level());
            }

            let mut sum = vec![0.5; m * 70];
            cpu.product_add(&x, m, &wq, &mut sum);
            let want: Vec<f32> = part(&wq).iter().map(|y| 0.5 + y).collect();
            assert_eq!(sum, want, "{}", cpu.level());

            let mut fused = vec![f32::NAN; m * 70];
            cpu.gate_up_silu(&x, m, &wq, &wu, &mut fused);
            let silu = |g: f32| g / (1.0 + (-g).exp());
            let want: Vec<f32> = part(&wq)
                .iter()
                .zip(part(&wu))
                .map(|(g, u)| silu(*g) * u)
                .collect();
            let off = distance(&fused, &want);
            assert!(off < 1e-6, "{}: {off}", cpu.level());
        }
    }
}

#[test]
fn rows_read_back_are_the_weights() {
    let mut random = Random::new(4);
    let cpu = Cpu::new(2, CpuLevel::detect());
    for ty in BlockType::ALL {
        let case = Case::new(&mut random, ty, 21, 512);
        let packed = case.pack(&cpu);
        assert_eq!(
            (packed.rows(), packed.cols(), packed.block_type()),
            (21, 512, ty)
        );
        let mut row = vec![0.0; 512];
        for r in 0..21 {
            packed.row(r, &mut row);
            assert_eq!(row, case.dense[r * 512..(r + 1) * 512], "{ty:?} row {r}");
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
            cpu.product(&[0.0; 256], 1, &w.expect("the shape fits"), &mut y);
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
