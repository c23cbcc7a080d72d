//! The host's cost of a token: 36 narrow layers, so that software Vulkan takes little time and the host's share
//! dominates. Prints the CPU time of the thread that records and submits.

use std::fs;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use gpu::{
    Allowed, DeviceModel, DeviceSampling, Layer, Options, PassInput, Shape, Want, Weights, Wgpu,
};
use kernels::{BlockType, KvType, Stored};

const LAYERS: usize = 36;
const ALLOWED: Allowed = Allowed {
    software: true,
    matrices: false,
};

/// CPU time of this thread, in nanoseconds.
fn cpu_time() -> u64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = stat.split_whitespace().next();
    first.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[expect(clippy::print_stdout, reason = "a command-line tool")]
fn main() -> Result<(), gpu::GpuError> {
    let mut exec = Wgpu::open(None, ALLOWED)?;
    let shape = Shape {
        layers: LAYERS,
        embedding: 256,
        feed_forward: 256,
        heads: 4,
        kv_heads: 1,
        head_dim: 64,
        vocab: 512,
        eps: 1e-6,
        rotary: 64,
        unrotated_every: Some(4),
    };
    println!("{}", exec.info());
    let ty = BlockType::Q4K;
    let mut matrix = |rows| {
        let zeros = vec![0; ty.row_bytes(256).unwrap_or(0) * rows];
        gpu::load_matrix(&mut exec, ty, rows, 256, Stored::Memory(&zeros))
    };
    let mut layers = Vec::new();
    for _ in 0..LAYERS {
        let (q, k, v, output) = (matrix(256)?, matrix(64)?, matrix(64)?, matrix(256)?);
        layers.push((q, k, v, output, matrix(256)?, matrix(256)?, matrix(256)?));
    }
    let token_embd = matrix(512)?;
    let mut norm = || gpu::load_norm(&mut exec, &[1.0; 256]);
    let output_norm = norm()?;
    let layers = layers
        .into_iter()
        .map(|(q, k, v, output, gate, up, down)| {
            Ok(Layer {
                attn_norm: norm()?,
                attn_q: q,
                attn_k: k,
                attn_v: v,
                attn_output: output,
                ffn_norm: norm()?,
                ffn_gate: gate,
                ffn_up: up,
                ffn_down: down,
                qkv_bias: None,
                head_norms: None,
            })
        })
        .collect::<Result<_, gpu::GpuError>>()?;
    let weights = Weights {
        token_embd,
        layers,
        output_norm,
        output: None,
    };
    let options = Options {
        kv: KvType::F16,
        floats: false,
        matrices: false,
    };
    let angles = Box::new(|_, count| vec![0.0; count * 64]);
    let mut model = DeviceModel::new(exec, shape, options, weights, angles)?;
    let never = AtomicBool::new(false);
    model.append(
        PassInput::Ids(&[1; 32]),
        Want::Last,
        &never,
        &mut Vec::new(),
    )?;
    let sampling = DeviceSampling {
        temperature: 0.6,
        top_p: 0.95,
        min_p: 0.0,
        top_k: 0,
    };
    model.set_sampling(sampling, &[])?;
    model.submit(Some(1), 0.5)?;
    const TOKENS: u32 = 200;
    let (mut recording, mut all, started) = (0, 0, Instant::now());
    for _ in 0..TOKENS {
        let before = cpu_time();
        model.submit(None, 0.5)?;
        let between = cpu_time();
        model.wait()?;
        recording += between - before;
        all += cpu_time() - before;
    }
    let per_token = |nanoseconds: u64| nanoseconds as f64 / f64::from(TOKENS) / 1e3;
    println!(
        "recording and submitting: {:.0} µs a token",
        per_token(recording)
    );
    println!("with waiting and reading: {:.0} µs a token", per_token(all));
    println!(
        "wall, software Vulkan included: {:.0} µs a token",
        started.elapsed().as_secs_f64() * 1e6 / f64::from(TOKENS)
    );
    Ok(())
}
