//! Cost of a token on a GPU, by kernel.

use engine::model::evaluate::Profile;
use engine::run::sampler::Sampler;
use engine::{GenerateError, process};
use inference::Sampling;
use serde::Serialize;

use crate::instrument::Instrument;

/// Cost of a token on a GPU. Times are `None` where the device has no timestamps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GpuReport {
    /// Kernels in the order of a pass.
    pub kernels: Vec<KernelReport>,
    /// Dispatches per token.
    pub dispatches: usize,
    /// Memory read bandwidth of the device, in 10⁹ bytes per second.
    pub read_bandwidth_gb_s: Option<f64>,
    /// Time of all kernels per token, in milliseconds.
    pub kernels_ms: Option<f64>,
    /// CPU time per token of the thread that records, submits and waits, in milliseconds.
    pub host_ms: Option<f64>,
}

/// Kernels of one operation, timed individually by the device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelReport {
    /// The operation.
    pub what: &'static str,
    /// Dispatches per token.
    pub count: usize,
    /// Bytes of weights and cache that they read in total.
    pub bytes: u64,
    /// Time of one dispatch, in microseconds.
    pub each_us: Option<f64>,
    /// Bytes read over time, in 10⁹ per second.
    pub gb_s: Option<f64>,
    /// Achieved rate over the bandwidth of the device.
    pub bandwidth_used: Option<f64>,
}

impl GpuReport {
    fn new(profile: &Profile, host_ms: Option<f64>) -> GpuReport {
        let kernels = profile.kernels.iter();
        GpuReport {
            dispatches: kernels.clone().map(|kernel| kernel.count).sum(),
            kernels_ms: kernels
                .clone()
                .map(|kernel| kernel.seconds.map(|seconds| 1e3 * seconds))
                .sum(),
            read_bandwidth_gb_s: profile.bandwidth.map(|rate| rate / 1e9),
            host_ms,
            kernels: kernels
                .map(|kernel| {
                    let taken = kernel.seconds.filter(|&seconds| seconds > 0.0);
                    let rate = taken.map(|seconds| kernel.bytes as f64 / seconds);
                    KernelReport {
                        what: kernel.what,
                        count: kernel.count,
                        bytes: kernel.bytes,
                        each_us: kernel
                            .seconds
                            .map(|seconds| 1e6 * seconds / kernel.count as f64),
                        gb_s: rate.map(|rate| rate / 1e9),
                        bandwidth_used: rate.zip(profile.bandwidth).map(|(rate, of)| rate / of),
                    }
                })
                .collect(),
        }
    }
}

/// Tokens over which the CPU time of the host is measured.
const TOKENS: u32 = 64;

impl Instrument<'_> {
    /// Measures the cost of a token after `depth` others; `None` on the CPU.
    pub(crate) fn gpu_report(
        &mut self,
        tokens: &[u32],
        depth: usize,
    ) -> Result<Option<GpuReport>, GenerateError> {
        self.fill(&tokens[..depth])?;
        let Some(profile) = self.engine.session().profile(&mut self.sequence)? else {
            return Ok(None);
        };
        let host_ms = self.host_ms(tokens[0])?;
        Ok(Some(GpuReport::new(&profile, host_ms)))
    }

    fn host_ms(&mut self, first: u32) -> Result<Option<f64>, GenerateError> {
        let greedy = Sampling {
            temperature: 0.0,
            ..Sampling::default()
        };
        let room = self.engine.summary().context_length - self.sequence.tokens().len();
        let mut sampler =
            Sampler::new(greedy, 1).with_suppressed(self.engine.tokenizer().suppressed());
        if room < TOKENS as usize || !self.samples_on_device(&sampler)? {
            return Ok(None);
        }
        let before = process::thread_time();
        self.decode_on_device(first, TOKENS as usize, &mut sampler)?;
        let spent = process::thread_time().zip(before);
        Ok(spent.map(|(after, before)| 1e3 * (after - before).as_secs_f64() / f64::from(TOKENS)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BenchParams, run, synthetic};
    use engine::{Engine, GpuPlacement, LoadOptions, Placement};

    #[test]
    fn a_tokens_kernels_are_counted_and_timed() {
        let devices = Some(gpu::list(true)).filter(|devices| !devices.is_empty());
        if testing::or_skip(devices).is_none() {
            return;
        }
        let options = LoadOptions {
            placement: Placement::Gpu(GpuPlacement {
                id: None,
                software: true,
                matrices: true,
                min_layers: 1,
            }),
            ..LoadOptions::default()
        };
        let file = synthetic("tiny-q4_k_m", 7).expect("a small model");
        let mut engine = Engine::load(&file, &options, &mut |_| {}).expect("it loads");
        let params = BenchParams {
            prompt: 0,
            generate: 4,
            depth: 40,
            repeats: 1,
            ..BenchParams::default()
        };
        let report = run(&mut engine, &params).expect("it is measured");
        let gpu = report.gpu.expect("it is on a GPU");
        let counts: Vec<_> = gpu.kernels.iter().map(|it| (it.what, it.count)).collect();
        let in_layers =
            ["q, k, v", "attention", "output", "gate, up", "down"].map(|what| (what, 5));
        let after_them = ["logits", "sample, reduce", "sample"].map(|what| (what, 1));
        assert_eq!(counts, [&in_layers[..], &after_them].concat());
        assert_eq!(gpu.dispatches, 5 * 5 + 3);
        // Weights are repacked for the GPU, and the norms are not counted.
        let weights = gpu.kernels.iter().filter(|it| it.what != "attention");
        let read: u64 = weights.map(|it| it.bytes).sum();
        let share = read as f64 / report.bytes_per_token as f64;
        assert!((0.98..1.15).contains(&share), "{share}");
        assert!(gpu.read_bandwidth_gb_s.is_some_and(|rate| rate > 0.1));
        let alone: f64 = gpu
            .kernels
            .iter()
            .filter_map(|it| Some(it.each_us? * it.count as f64))
            .sum();
        let together = gpu.kernels_ms.expect("timestamps");
        assert!(together > 0.0 && (alone / 1e3 / together - 1.0).abs() < 1e-6);
        if cfg!(target_os = "linux") {
            assert!(gpu.host_ms.is_some_and(|spent| spent > 0.0));
        }
    }

    #[test]
    fn bandwidth_is_bytes_over_time_where_the_device_has_timestamps() {
        let of = |seconds, bandwidth| {
            let kernels = vec![gpu::KernelCost {
                what: "down",
                count: 4,
                bytes: 2_000_000,
                seconds,
            }];
            GpuReport::new(&Profile { kernels, bandwidth }, None)
        };
        let timed = of(Some(1e-3), Some(4e9));
        assert_eq!((timed.dispatches, timed.kernels_ms), (4, Some(1.0)));
        let kernel = &timed.kernels[0];
        let found = [kernel.each_us, kernel.gb_s, kernel.bandwidth_used];
        for (found, expected) in found.into_iter().zip([250.0, 2.0, 0.5]) {
            assert!(found.is_some_and(|found| (found - expected).abs() < 1e-9));
        }
        let untimed = of(None, None);
        assert_eq!((untimed.dispatches, untimed.kernels_ms), (4, None));
        let kernel = &untimed.kernels[0];
        assert_eq!(
            (kernel.bytes, kernel.each_us, kernel.gb_s),
            (2_000_000, None, None)
        );
    }
}
