//! Forecast of memory and speed of a model on this computer.
//!
//! Memory is estimated by the code that decides whether a model opens. The rate is the one that the file has reached, else
//! it follows from the bytes per second that another model has read under the same settings, else from a share of the
//! memory bandwidth.

use engine::{ContextMemory, Footprint, LoadOptions};

use crate::wire::{Fit, Forecast};

/// Share of the memory bandwidth that decoding reaches: the median of this project's bench records.
const BANDWIDTH_SHARE: f64 = 0.75;
/// Bytes of weights below which caches hold a good part of them, so that the memory's bandwidth is no estimate.
const WITHIN_CACHES: u64 = 256 << 20;
/// Tokens per second below which people read faster than the model writes.
const READING_RATE: f64 = 5.0;

/// Parameters of a forecast beside the model.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The settings with which a model is opened.
    pub options: LoadOptions,
    /// Bytes of memory that are free, or would be once the open model is closed.
    pub available: Option<u64>,
    /// Bytes per second from memory with the threads of the settings; `None` if models run on a GPU.
    pub bandwidth: Option<f64>,
    /// Bytes of weights per second that the last model with a long answer under these settings has read.
    pub reached: Option<f64>,
}

impl Machine {
    /// Returns the forecast of a model. `measured`: tokens per second of this very file.
    pub fn forecast(&self, footprint: &Footprint, measured: Option<f64>) -> Forecast {
        self.forecast_with(
            footprint.memory(&self.options, self.available),
            footprint,
            measured,
        )
    }

    /// Returns the forecast of the open model with a context of `tokens`, which is known to fit.
    pub fn forecast_open(
        &self,
        footprint: &Footprint,
        tokens: usize,
        measured: Option<f64>,
    ) -> Forecast {
        let memory = ContextMemory {
            tokens,
            bytes: footprint.bytes_at(tokens, &self.options),
            fits: true,
        };
        self.forecast_with(memory, footprint, measured)
    }

    /// Returns the bytes of weights that a model reads per second at this rate; `None` for a small one, which caches
    /// hold.
    pub fn reached_by(footprint: &Footprint, tokens_per_second: f64) -> Option<f64> {
        let per_token = footprint.bytes_per_token;
        (per_token > WITHIN_CACHES).then_some(tokens_per_second * per_token as f64)
    }

    fn forecast_with(
        &self,
        memory: ContextMemory,
        footprint: &Footprint,
        measured: Option<f64>,
    ) -> Forecast {
        let per_token = footprint.bytes_per_token;
        let expected = self.bandwidth.map(|bandwidth| BANDWIDTH_SHARE * bandwidth);
        let estimated = (self
            .reached
            .or(expected)
            .filter(|_| per_token > WITHIN_CACHES))
        .map(|bytes_per_second| bytes_per_second / per_token as f64);
        let tokens_per_second = measured.or(estimated).filter(|rate| rate.is_finite());
        let fit = match tokens_per_second {
            _ if !memory.fits => Fit::DoesNotFit,
            Some(rate) if rate < READING_RATE => Fit::Slow,
            _ => Fit::Fits,
        };
        Forecast {
            context_length: u32::try_from(memory.tokens).unwrap_or(u32::MAX),
            memory_bytes: memory.bytes,
            fit,
            tokens_per_second,
            measured: measured.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const Q4_K_M: u64 = 1_915_305_312;
    const GB: u64 = 1_000_000_000;

    fn smollm3_3b(file_bytes: u64) -> Footprint {
        Footprint::of_published("SmolLM3-3B", file_bytes).expect("published")
    }

    fn machine(available: u64, bandwidth: Option<f64>) -> Machine {
        Machine {
            options: LoadOptions {
                context: Some(4096),
                threads: Some(2),
                ..LoadOptions::default()
            },
            available: Some(available),
            bandwidth,
            reached: None,
        }
    }

    fn forecast(available: u64, bandwidth: Option<f64>, measured: Option<f64>) -> Forecast {
        machine(available, bandwidth).forecast(&smollm3_3b(Q4_K_M), measured)
    }

    #[test]
    fn the_memory_holds_weights_cache_and_scratch() {
        let forecast = forecast(8 * GB, None, None);
        let cache = 4096 * 72 * 1024;
        assert_eq!(forecast.context_length, 4096);
        let beside = forecast.memory_bytes - Q4_K_M - cache;
        assert!((GB / 5..GB).contains(&beside), "{beside}");
        assert_eq!(
            (forecast.fit, forecast.tokens_per_second),
            (Fit::Fits, None)
        );
    }

    #[test]
    fn a_model_that_does_not_fit_says_what_it_would_take() {
        let forecast = forecast(GB, Some(40e9), None);
        assert_eq!(forecast.fit, Fit::DoesNotFit);
        assert_eq!(forecast.context_length, 1024);
        assert!(forecast.memory_bytes > Q4_K_M);
    }

    #[test]
    fn the_open_model_has_the_context_that_it_was_opened_with_and_fits() {
        let footprint = smollm3_3b(Q4_K_M);
        let open = machine(GB, Some(48e9)).forecast_open(&footprint, 38_912, None);
        assert_eq!((open.context_length, open.fit), (38_912, Fit::Fits));
        let same = machine(64 * GB, None);
        let mut options = same.options.clone();
        options.context = Some(38_912);
        let same = Machine { options, ..same }.forecast(&footprint, None);
        assert_eq!(open.memory_bytes, same.memory_bytes);
    }

    #[test]
    fn what_another_model_has_reached_here_goes_before_the_bandwidth() {
        let q8 = smollm3_3b(2 * Q4_K_M);
        let reached = Machine::reached_by(&smollm3_3b(Q4_K_M), 40.0);
        // Without a bandwidth, as on a GPU whose memory was not measured, and with one.
        for bandwidth in [None, Some(48e9)] {
            let machine = Machine {
                reached,
                ..machine(8 * GB, bandwidth)
            };
            let forecast = machine.forecast(&q8, None);
            assert_eq!(forecast.tokens_per_second, Some(20.0));
            assert!(!forecast.measured);
        }
        let mut small = smollm3_3b(Q4_K_M);
        small.bytes_per_token = 4_000_000;
        assert_eq!(Machine::reached_by(&small, 900.0), None);
    }

    #[test]
    fn the_rate_is_estimated_from_bandwidth_until_it_is_measured() {
        let estimated = forecast(8 * GB, Some(48e9), None);
        let rate = estimated.tokens_per_second.expect("estimated");
        // The EPYC of the bench records: 48 GB/s and 20.3 tokens/s.
        assert!((15.0..22.0).contains(&rate), "{rate}");
        assert!(!estimated.measured);
        let measured = forecast(8 * GB, Some(48e9), Some(3.5));
        assert_eq!(measured.tokens_per_second, Some(3.5));
        assert_eq!((measured.measured, measured.fit), (true, Fit::Slow));
        let mut small = smollm3_3b(Q4_K_M);
        small.bytes_per_token = 4_000_000;
        let small = machine(8 * GB, Some(48e9)).forecast(&small, None);
        assert_eq!(small.tokens_per_second, None, "it is in the caches");
        // The system had no memory for the measurement.
        let none = forecast(8 * GB, Some(f64::NAN), None);
        assert_eq!((none.tokens_per_second, none.fit), (None, Fit::Fits));
    }
}
