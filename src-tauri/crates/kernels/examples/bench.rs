//! Measures products of SmolLM3-3B's shapes against memory bandwidth and one another:
//! `cargo run --release -p kernels --example bench [threads] [level …] [pack|gemv|gemm|attention …]`.

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::time::Instant;

use kernels::{BlockType, Cpu, CpuLevel, KvLayer, KvType, Matrix, integer_rate, read_bandwidth};

/// Repetitions, of which the fastest counts: the others were disturbed by other processes.
const REPEATS: usize = 5;

/// The fastest of a few runs, in seconds. On one thread only the time on the core counts, so that loops can be tuned on a
/// busy machine.
fn best_seconds(cpu: &Cpu, mut run: impl FnMut()) -> f64 {
    run();
    let start = Instant::now();
    run();
    // The scheduler's clock ticks in milliseconds.
    let rounds = (0.05 / start.elapsed().as_secs_f64())
        .ceil()
        .clamp(1.0, 1000.0) as usize;
    (0..REPEATS)
        .map(|_| {
            let (start, on_core) = (Instant::now(), seconds_on_core());
            (0..rounds).for_each(|_| run());
            let seconds = if cpu.threads() == 1 {
                seconds_on_core() - on_core
            } else {
                start.elapsed().as_secs_f64()
            };
            seconds / rounds as f64
        })
        .fold(f64::INFINITY, f64::min)
}

fn seconds_on_core() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ')
        .next()
        .and_then(|ns| ns.parse::<f64>().ok())
        .unwrap_or(0.0)
        / 1e9
}

fn noise(n: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut bytes = vec![0; n.next_multiple_of(8)];
    for b in bytes.chunks_exact_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // No f16 in the noise may be infinite: bit 14 of every half stays clear.
        b.copy_from_slice(&(state & 0xbfff_bfff_bfff_bfff).to_le_bytes());
    }
    bytes.truncate(n);
    bytes
}

fn pack(cpu: &Cpu, ty: BlockType, rows: usize, cols: usize) -> Matrix {
    let bytes = noise(ty.row_bytes(cols).expect("whole blocks") * rows);
    cpu.pack(ty, rows, cols, &bytes).expect("the shape fits")
}

fn gemv(cpu: &Cpu, bandwidth: f64) {
    let (rows, cols) = (11_008, 2_048);
    for ty in [
        BlockType::Q4K,
        BlockType::Q6K,
        BlockType::Q8_0,
        BlockType::Q5K,
        BlockType::Q4_0,
        BlockType::IQ4NL,
        BlockType::IQ4XS,
        BlockType::F16,
    ] {
        // Far larger than the caches together.
        let weights: Vec<Matrix> = (0..16).map(|_| pack(cpu, ty, rows, cols)).collect();
        let bytes: usize = weights.iter().map(Matrix::bytes).sum();
        for m in [1, 4, 8] {
            let (x, mut y) = (vec![0.1; m * cols], vec![0.0; m * rows]);
            let seconds = best_seconds(cpu, || {
                for w in &weights {
                    cpu.product(&x, m, w, &mut y).expect("memory");
                }
            });
            let rate = bytes as f64 / seconds;
            println!(
                "  gemv {:5} x {m} {:6.2} GB/s, {:3.0} % of read bandwidth",
                ty.name(),
                rate / 1e9,
                rate / bandwidth * 100.0
            );
        }
    }
}

fn gemm(cpu: &Cpu) {
    let m = 512;
    for (ty, rows, cols) in [
        (BlockType::Q4K, 2_048, 2_048),
        (BlockType::Q4K, 11_008, 2_048),
        (BlockType::Q4K, 2_048, 11_008),
        (BlockType::Q6K, 2_048, 11_008),
        (BlockType::Q8_0, 2_048, 2_048),
        (BlockType::IQ4NL, 2_048, 2_048),
        (BlockType::IQ4XS, 2_048, 2_048),
        (BlockType::F16, 2_048, 2_048),
    ] {
        let w = pack(cpu, ty, rows, cols);
        let (x, mut y) = (vec![0.1; m * cols], vec![0.0; m * rows]);
        let seconds = best_seconds(cpu, || {
            cpu.product(&x, m, &w, &mut y).expect("memory");
        });
        let rate = (m * rows * cols) as f64 / seconds;
        // A token of the 3B shape takes 2.81 G multiplications outside of attention.
        println!(
            "  gemm {:5} {rows:5} x {cols:5} {:6.1} GMAC/s, as 3B {:5.1} tok/s",
            ty.name(),
            rate / 1e9,
            rate / 2.81e9
        );
    }
}

fn attention(cpu: &Cpu) {
    for ty in [KvType::F16, KvType::Q8_0] {
        for (past, m) in [(0, 512), (8_192, 512), (8_192, 1)] {
            let mut kv = KvLayer::new(ty, 4, 128);
            let (q, mut out) = (vec![0.1; m * 2_048], vec![0.0; m * 2_048]);
            let row: Vec<f32> = (0..512).map(|i| (i as f32).sin()).collect();
            for _ in 0..past + m {
                kv.append(&row, &row, 1);
            }
            let seconds = best_seconds(cpu, || {
                cpu.attention(&q, m, 16, &kv, past, &mut out)
                    .expect("memory");
            });
            let pairs = (past + m / 2) * m * 2_048 * 2;
            println!(
                "  attention {:4} past {past:5} m {m:3} {:6.1} GMAC/s, {:6.2} ms for 36 layers a token",
                ty.name(),
                pairs as f64 / seconds / 1e9,
                seconds * 36e3 / m as f64
            );
        }
    }
}

fn packing(cpu: &Cpu) {
    for ty in [
        BlockType::Q4K,
        BlockType::Q6K,
        BlockType::Q8_0,
        BlockType::IQ4XS,
    ] {
        let bytes = noise(ty.row_bytes(2_048).expect("whole blocks") * 16_384);
        let seconds = best_seconds(cpu, || drop(cpu.pack(ty, 16_384, 2_048, &bytes)));
        println!(
            "  pack {:5} {:6.2} GB/s",
            ty.name(),
            bytes.len() as f64 / seconds / 1e9
        );
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let threads = arguments.first().and_then(|n| n.parse().ok()).unwrap_or(2);
    let named: Vec<CpuLevel> = arguments.iter().filter_map(|a| a.parse().ok()).collect();
    let levels = if named.is_empty() {
        vec![CpuLevel::best()]
    } else {
        named
    };
    let parts = ["pack", "gemv", "gemm", "attention"];
    let all = !arguments.iter().any(|a| parts.contains(&a.as_str()));
    let wanted = |part: &str| all || arguments.iter().any(|a| a == part);
    for level in levels {
        let bandwidth = read_bandwidth(threads);
        println!(
            "{level}, {threads} threads; read bandwidth {:.2} GB/s, integers {:.0} GMAC/s",
            bandwidth / 1e9,
            integer_rate(threads, level) / 1e9
        );
        let cpu = Cpu::new(threads, level);
        if wanted("pack") {
            packing(&cpu);
        }
        if wanted("gemv") {
            gemv(&cpu, bandwidth);
        }
        if wanted("gemm") {
            gemm(&cpu);
        }
        if wanted("attention") {
            attention(&cpu);
        }
    }
}
