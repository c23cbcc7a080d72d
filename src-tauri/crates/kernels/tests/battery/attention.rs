//! Attention at every level and cache type, against a plain f64 loop.

use crate::random::{Random, distance};
use kernels::{Cpu, CpuLevel, KvLayer, KvType};

struct Shape {
    heads: usize,
    kv_heads: usize,
    dim: usize,
    past: usize,
    m: usize,
}

fn plain(s: &Shape, q: &[f32], k: &[f32], v: &[f32]) -> Vec<f32> {
    let mut out = Vec::new();
    for i in 0..s.m {
        for h in 0..s.heads {
            let kv = h / (s.heads / s.kv_heads);
            let q = &q[(i * s.heads + h) * s.dim..][..s.dim];
            let row =
                |x: &[f32], p: usize, d: usize| f64::from(x[(p * s.kv_heads + kv) * s.dim + d]);
            let scores: Vec<f64> = (0..=s.past + i)
                .map(|p| {
                    (0..s.dim)
                        .map(|d| f64::from(q[d]) * row(k, p, d))
                        .sum::<f64>()
                })
                .map(|score| score / (s.dim as f64).sqrt())
                .collect();
            let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = scores.iter().map(|s| (s - most).exp()).collect();
            let total: f64 = weights.iter().sum();
            for d in 0..s.dim {
                let sum: f64 = weights
                    .iter()
                    .enumerate()
                    .map(|(p, w)| w * row(v, p, d))
                    .sum();
                out.push((sum / total) as f32);
            }
        }
    }
    out
}

#[test]
fn attention_of_every_level_and_cache_type() {
    let mut random = Random::new(5);
    let shapes = [
        Shape {
            heads: 1,
            kv_heads: 1,
            dim: 16,
            past: 0,
            m: 1,
        },
        Shape {
            heads: 6,
            kv_heads: 2,
            dim: 48,
            past: 3,
            m: 2,
        },
        Shape {
            heads: 4,
            kv_heads: 4,
            dim: 20,
            past: 0,
            m: 70,
        },
        Shape {
            heads: 8,
            kv_heads: 2,
            dim: 64,
            past: 130,
            m: 1,
        },
        Shape {
            heads: 16,
            kv_heads: 4,
            dim: 128,
            past: 700,
            m: 1,
        },
        Shape {
            heads: 16,
            kv_heads: 4,
            dim: 128,
            past: 261,
            m: 37,
        },
    ];
    for s in shapes {
        let positions = s.past + s.m;
        // Sharp softmax in some heads: scores of up to about ±10.
        let q: Vec<f32> = random
            .floats(s.m * s.heads * s.dim)
            .iter()
            .map(|x| x * 1.5)
            .collect();
        let (k, v) = (
            random.floats(positions * s.kv_heads * s.dim),
            random.floats(positions * s.kv_heads * s.dim),
        );
        let want = plain(&s, &q, &k, &v);
        for level in CpuLevel::available() {
            for threads in [1, 3] {
                let cpus = [Cpu::new(threads, level), Cpu::exact(threads)];
                for (cpu, ty, bound) in [
                    (&cpus[1], KvType::F32, 5e-6),
                    (&cpus[0], KvType::F32, 3e-3),
                    (&cpus[0], KvType::F16, 3e-3),
                    (&cpus[0], KvType::Q8_0, 0.06),
                ] {
                    let mut kv = KvLayer::new(ty, s.kv_heads, s.dim);
                    let split = s.past * s.kv_heads * s.dim;
                    kv.append(&k[..split], &v[..split], s.past);
                    kv.append(&k[split..], &v[split..], s.m);
                    let mut out = vec![f32::NAN; want.len()];
                    cpu.attention(&q, s.m, s.heads, &kv, s.past, &mut out)
                        .expect("memory");
                    let off = distance(&out, &want);
                    let label = format!("{} {} {level}", ty.name(), s.dim);
                    let tiled = cpu.level() == CpuLevel::Amx && !cpu.is_exact() && s.m > 8;
                    // In bf16, scores of ±10 have an error of about 0.02.
                    let bound = if tiled { bound + 5e-3 } else { bound };
                    assert!(off < bound, "{label} past {} m {}: {off}", s.past, s.m);
                }
            }
        }
    }
}

#[test]
fn any_number_of_queries_after_any_past() {
    let mut random = Random::new(11);
    // Few heads and queries, so that positions are split.
    let (kv_heads, dim) = (2, 32);
    let most = 560;
    let (k, v) = (
        random.floats(most * kv_heads * dim),
        random.floats(most * kv_heads * dim),
    );
    let cpus: Vec<Cpu> = CpuLevel::available()
        .into_iter()
        .map(|level| Cpu::new(2, level))
        .collect();
    // If the last query block has one query, its rows are fewer than four, four, or more.
    for heads in [4, 6, 8, 10] {
        for past in [0, 70, 130, 200, 250, 330, 513] {
            for m in [9, 10, 11, 16, 17, 18, 33, 45] {
                let s = Shape {
                    heads,
                    kv_heads,
                    dim,
                    past,
                    m,
                };
                // The same queries at every level: the error depends on them.
                let q = random.floats(m * heads * dim);
                let want = plain(&s, &q, &k, &v);
                let cells = (past + m) * kv_heads * dim;
                let mut kv = KvLayer::new(KvType::F16, kv_heads, dim);
                kv.append(&k[..cells], &v[..cells], past + m);
                for cpu in &cpus {
                    let mut out = vec![f32::NAN; q.len()];
                    cpu.attention(&q, m, heads, &kv, past, &mut out)
                        .expect("memory");
                    let off = distance(&out, &want);
                    // Averages over many positions are small, and the error of bf16 is large beside them.
                    let level = cpu.level();
                    let bound = if level == CpuLevel::Amx { 0.02 } else { 3e-3 };
                    assert!(
                        off < bound,
                        "{level} {heads} heads past {past} m {m}: {off}"
                    );
                }
            }
        }
    }
}

#[test]
fn few_queries_are_bit_identical_to_single_ones() {
    let mut random = Random::new(9);
    let (heads, kv_heads, dim) = (16, 4, 64);
    // Around the ends of tiles, KV blocks and KV splits, and far behind them.
    for past in [0, 12, 60, 509, 1500] {
        let positions = past + 8;
        let keys = random.floats(positions * kv_heads * dim);
        let q: Vec<f32> = random.floats(8 * heads * dim);
        for (level, ty) in CpuLevel::available()
            .into_iter()
            .flat_map(|level| [KvType::F32, KvType::F16, KvType::Q8_0].map(|ty| (level, ty)))
        {
            let cpu = Cpu::new(3, level);
            let mut kv = KvLayer::new(ty, kv_heads, dim);
            kv.append(&keys, &keys, positions);
            let row = heads * dim;
            let run = |from: usize, m: usize| {
                let mut out = vec![f32::NAN; m * row];
                let q = &q[from * row..(from + m) * row];
                cpu.attention(q, m, heads, &kv, past + from, &mut out)
                    .expect("memory");
                out
            };
            let alone: Vec<f32> = (0..8).flat_map(|i| run(i, 1)).collect();
            for m in 2..=8 {
                let label = format!("{} past {past} m {m} {level}", ty.name());
                assert!(run(0, m) == alone[..m * row], "{label}");
            }
        }
    }
}

#[test]
fn truncated_positions_are_overwritten() {
    let mut random = Random::new(6);
    for ty in [KvType::F32, KvType::F16, KvType::Q8_0] {
        let rows = random.floats(400 * 64);
        let q = random.floats(2 * 64);
        let cpu = Cpu::new(2, CpuLevel::best());
        let mut fresh = KvLayer::new(ty, 2, 32);
        fresh.append(&rows[..300 * 64], &rows[..300 * 64], 300);
        let mut reused = KvLayer::new(ty, 2, 32);
        reused.append(&rows[..280 * 64], &rows[..280 * 64], 280);
        reused.append(&rows[..120 * 64], &rows[..120 * 64], 120);
        reused.truncate(280);
        reused.append(&rows[280 * 64..300 * 64], &rows[280 * 64..300 * 64], 20);
        assert_eq!((fresh.len(), fresh.bytes()), (reused.len(), fresh.bytes()));
        let run = |kv: &KvLayer| {
            let mut out = vec![f32::NAN; 128];
            cpu.attention(&q, 2, 2, kv, 298, &mut out).expect("memory");
            out
        };
        assert_eq!(run(&fresh), run(&reused));
    }
}

#[test]
fn truncated_positions_contribute_to_no_sum() {
    let (heads, dim) = (2, 32);
    let row = heads * dim;
    let mut random = Random::new(7);
    let rows = random.floats(400 * row);
    let poison = vec![f32::INFINITY; 300 * row];
    for level in CpuLevel::available() {
        for ty in [KvType::F32, KvType::F16, KvType::Q8_0] {
            let cpu = Cpu::new(2, level);
            for (kept, added) in [(0, 1), (3, 2), (16, 5), (20, 40), (250, 12), (30, 226)] {
                let new = &rows[kept * row..(kept + added) * row];
                let mut fresh = KvLayer::new(ty, heads, dim);
                fresh.append(&rows[..kept * row], &rows[..kept * row], kept);
                let mut reused = KvLayer::new(ty, heads, dim);
                reused.append(&rows[..kept * row], &rows[..kept * row], kept);
                reused.append(&poison, &poison, 300);
                reused.truncate(kept);
                let run = |kv: &mut KvLayer| {
                    kv.append(new, new, added);
                    let mut out = vec![f32::NAN; added * row];
                    cpu.attention(new, added, heads, kv, kept, &mut out)
                        .expect("memory");
                    out
                };
                let (one, other) = (run(&mut fresh), run(&mut reused));
                let label = format!("{} {}, {kept} + {added}", level.name(), ty.name());
                assert!(one.iter().all(|v| v.is_finite()), "{label}");
                assert!(one == other, "{label}");
            }
        }
    }
}
