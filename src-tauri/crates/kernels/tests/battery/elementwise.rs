//! Element-wise loops at every level, against plain f64 arithmetic.

use crate::random::Random;
use kernels::{Cpu, CpuLevel};

/// Rotates pairs `(2j, 2j + 1)` of the first `rotary` components of each head.
fn rotated(x: &[f32], heads: usize, dim: usize, rotary: usize, cos_sin: &[f32]) -> Vec<f32> {
    let mut out = x.to_vec();
    for (row, cos_sin_row) in out
        .chunks_exact_mut(heads * dim)
        .zip(cos_sin.chunks_exact(rotary))
    {
        for head in row.chunks_exact_mut(dim) {
            for j in 0..rotary / 2 {
                let [a, b, cos, sin] = [
                    head[2 * j],
                    head[2 * j + 1],
                    cos_sin_row[2 * j],
                    cos_sin_row[2 * j + 1],
                ]
                .map(f64::from);
                head[2 * j] = (a * cos - b * sin) as f32;
                head[2 * j + 1] = (a * sin + b * cos) as f32;
            }
        }
    }
    out
}

#[test]
fn rope_of_every_level() {
    let mut random = Random::new(21);
    // Whole vectors, parts of one, heads of which only some components are rotated, and rows for several threads.
    for (m, heads, dim, rotary) in [
        (1, 1, 16, 16),
        (1, 4, 64, 64),
        (3, 2, 20, 20),
        (5, 3, 48, 34),
        (2, 2, 32, 6),
        (40, 2, 128, 128),
        (33, 1, 64, 48),
    ] {
        let x = random.floats(m * heads * dim);
        let cos_sin: Vec<f32> = (0..m * rotary / 2)
            .flat_map(|i| {
                let (sin, cos) = (0.37 * i as f32).sin_cos();
                // Scaled by more than 1, as YaRN does.
                [1.07 * cos, 1.07 * sin]
            })
            .collect();
        let want = rotated(&x, heads, dim, rotary, &cos_sin);
        assert_ne!(x, want, "something is rotated");
        for level in CpuLevel::available() {
            for threads in [1, 3] {
                let mut y = x.clone();
                Cpu::new(threads, level).rope(&mut y, heads, dim, rotary, &cos_sin, m);
                for (i, (y, want)) in y.iter().zip(&want).enumerate() {
                    assert!(
                        (y - want).abs() <= 2e-6 * (1.0 + want.abs()),
                        "{level}, {m} rows of {heads} heads of {dim}, {rotary} rotated: {y} for {want} at {i}"
                    );
                }
            }
        }
    }
}

#[test]
fn no_rotation_changes_nothing() {
    let x = Random::new(22).floats(64);
    for level in CpuLevel::available() {
        let mut y = x.clone();
        Cpu::new(1, level).rope(&mut y, 2, 32, 0, &[], 1);
        assert_eq!(x, y);
    }
}

#[test]
fn rms_norm_of_every_level() {
    let mut random = Random::new(23);
    for (m, n) in [(1, 1), (1, 16), (2, 37), (17, 256), (40, 100)] {
        let (x, weight) = (random.floats(m * n), random.floats(n));
        let eps = 1e-2_f32;
        let want: Vec<f64> = x
            .chunks_exact(n)
            .flat_map(|x| {
                let squares = x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
                let scale = 1.0 / (squares / n as f64 + f64::from(eps)).sqrt();
                (x.iter().zip(&weight)).map(move |(&x, &w)| f64::from(x) * scale * f64::from(w))
            })
            .collect();
        for level in CpuLevel::available() {
            let mut y = vec![f32::NAN; m * n];
            Cpu::new(3, level).rms_norm(&x, &weight, eps, &mut y);
            for (y, want) in y.iter().zip(&want) {
                let off = (f64::from(*y) - want).abs();
                assert!(
                    off <= 1e-5 * (1.0 + want.abs()),
                    "{level} {m} × {n}: {y} for {want}"
                );
            }
        }
    }
}
