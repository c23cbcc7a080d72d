//! Prefill and decoding rates of a GPU and the CPU with a model.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Expected rates of the whole model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// On the GPU.
    pub gpu: Rate,
    /// On the CPU.
    pub cpu: Rate,
}

/// Tokens per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Prefill.
    pub prefill: f64,
    /// Decoding.
    pub decode: f64,
}

impl Rates {
    /// Rates with a share of the layers, from 0 to 1, on the GPU and the others on the CPU.
    pub fn shared(&self, share: f64) -> Rates {
        let both = |gpu: f64, cpu: f64| 1.0 / (share / gpu + (1.0 - share) / cpu);
        Rates {
            gpu: Rate {
                prefill: both(self.gpu.prefill, self.cpu.prefill),
                decode: both(self.gpu.decode, self.cpu.decode),
            },
            cpu: self.cpu,
        }
    }

    /// Returns whether the GPU is worth using: it decodes at least 15 % faster, or no slower with twice the prefill
    /// rate.
    pub fn favour_gpu(&self) -> bool {
        let decode = self.gpu.decode / self.cpu.decode;
        let prefill = self.gpu.prefill / self.cpu.prefill;
        decode >= 1.15 || (decode >= 1.0 && prefill >= 2.0)
    }

    /// Returns the smallest number of `layers` on the GPU with which it is worth using; all of them if it never is.
    pub fn min_layers(&self, layers: usize) -> usize {
        (1..layers)
            .find(|&fit| self.shared(fit as f64 / layers as f64).favour_gpu())
            .unwrap_or(layers)
    }
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "about {:.1} tokens/s, the CPU {:.1}",
            self.gpu.decode, self.cpu.decode
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_favoured_for_faster_decoding_or_much_faster_prefill() {
        let favour = |decode, prefill| {
            let cpu = Rate {
                prefill: 100.0,
                decode: 10.0,
            };
            let gpu = Rate { prefill, decode };
            Rates { gpu, cpu }.favour_gpu()
        };
        assert!(favour(12.0, 50.0) && favour(10.0, 200.0));
        assert!(!favour(11.0, 150.0) && !favour(9.9, 1000.0));
    }

    #[test]
    fn fewer_layers_on_the_gpu_gain_less() {
        let rate = |decode, prefill| Rate { decode, prefill };
        let rates = Rates {
            gpu: rate(40.0, 1000.0),
            cpu: rate(10.0, 100.0),
        };
        let half = rates.shared(0.5).gpu;
        assert!((half.decode - 16.0).abs() < 1e-9 && (half.prefill - 2000.0 / 11.0).abs() < 1e-9);
        assert!((rates.shared(1.0).gpu.decode - 40.0).abs() < 1e-9);
        // A token takes 100 ms on the CPU, and each tenth of it that is on the GPU saves 7.5.
        assert!(!rates.shared(0.1).favour_gpu() && rates.shared(0.2).favour_gpu());
        assert_eq!(rates.min_layers(10), 2);
        let slow = Rates {
            gpu: rate(5.0, 50.0),
            ..rates
        };
        assert_eq!(slow.min_layers(10), 10);
    }
}
