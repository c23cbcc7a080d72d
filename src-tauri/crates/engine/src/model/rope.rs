//! Rotary position embedding: the angle of every pair at every position, YaRN included, as in llama.cpp.

use std::f64::consts::TAU;

/// Rotary embedding of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Rope {
    /// Base of the frequencies.
    pub theta: f32,
    /// Scaling for positions beyond the trained context.
    pub scaling: Scaling,
    /// Divisors of the frequencies, one for each pair; empty if all are 1.
    pub divisors: Vec<f32>,
}

/// RoPE scaling: change of the frequencies for a context beyond the trained one.
#[derive(Clone, Debug, PartialEq)]
pub enum Scaling {
    /// All frequencies divided by `factor`; 1 for none.
    Linear {
        /// The context extension factor.
        factor: f32,
    },
    /// Low frequencies divided, high ones kept, a linear ramp between (arXiv 2309.00071).
    Yarn(Yarn),
}

/// YaRN's parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Yarn {
    /// The context extension factor.
    pub factor: f32,
    /// Context length before the extension.
    pub original_context: usize,
    /// Pairs that turn more often than this within the original context are kept.
    pub beta_fast: f32,
    /// Pairs that turn less often than this are divided by the factor.
    pub beta_slow: f32,
    /// Extra factor on the magnitude.
    pub attention_factor: f32,
}

/// Angle per position of every rotated pair.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// Radians per position of each pair: `[rotary / 2]`.
    frequencies: Vec<f64>,
    /// Factor on every cosine and sine: YaRN's attention temperature.
    magnitude: f64,
}

impl Rotation {
    /// The frequencies of `rope` for the first `rotary` values of each head, in interleaved pairs (2j, 2j+1).
    pub fn new(rope: &Rope, rotary: usize) -> Rotation {
        let base = f64::from(rope.theta);
        let dims = rotary as f64;
        let extrapolated = (0..rotary / 2).map(|pair| {
            let divisor = rope.divisors.get(pair).map_or(1.0, |&it| f64::from(it));
            base.powf(-2.0 * pair as f64 / dims) / divisor
        });
        match &rope.scaling {
            Scaling::Linear { factor } => {
                let frequencies = extrapolated
                    .map(|frequency| frequency / f64::from(*factor))
                    .collect();
                Rotation {
                    frequencies,
                    magnitude: 1.0,
                }
            }
            Scaling::Yarn(yarn) => {
                let factor = f64::from(yarn.factor);
                let (low, high) = yarn.ramp(base, dims);
                let frequencies = extrapolated
                    .enumerate()
                    .map(|(pair, frequency)| {
                        let kept =
                            1.0 - ((pair as f64 - low) / (high - low).max(0.001)).clamp(0.0, 1.0);
                        frequency / factor * (1.0 - kept) + frequency * kept
                    })
                    .collect();
                let magnitude = f64::from(yarn.attention_factor) * (1.0 + 0.1 * factor.ln());
                Rotation {
                    frequencies,
                    magnitude,
                }
            }
        }
    }

    /// Number of rotated pairs in a head.
    pub fn pairs(&self) -> usize {
        self.frequencies.len()
    }

    /// Appends cosine and sine of every pair for `m` positions from `first` on: `[m][pairs][2]`.
    pub fn append(&self, first: usize, m: usize, cos_sin: &mut Vec<f32>) {
        for position in first..first + m {
            for frequency in &self.frequencies {
                let (sin, cos) = (position as f64 * frequency).sin_cos();
                #[expect(clippy::cast_possible_truncation, reason = "activations are f32")]
                cos_sin.extend([(cos * self.magnitude) as f32, (sin * self.magnitude) as f32]);
            }
        }
    }
}

impl Yarn {
    /// The pairs between which the ramp runs.
    fn ramp(&self, base: f64, dims: f64) -> (f64, f64) {
        let pair_that_turns = |turns: f32| {
            dims * (self.original_context as f64 / (f64::from(turns) * TAU)).ln()
                / (2.0 * base.ln())
        };
        let low = pair_that_turns(self.beta_fast).floor().max(0.0);
        let high = pair_that_turns(self.beta_slow).ceil().min(dims - 1.0);
        (low, high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn angles(scaling: Scaling, position: usize) -> Vec<f32> {
        let rope = Rope {
            theta: 10_000.0,
            scaling,
            divisors: Vec::new(),
        };
        let mut cos_sin = Vec::new();
        Rotation::new(&rope, 64).append(position, 1, &mut cos_sin);
        cos_sin
    }

    #[test]
    fn a_linear_factor_brings_positions_closer() {
        let linear = |factor| Scaling::Linear { factor };
        // A quarter and four times are exact in binary.
        assert_eq!(angles(linear(4.0), 4), angles(linear(1.0), 1));
        assert_eq!(angles(linear(4.0), 4_000), angles(linear(1.0), 1_000));
        assert_ne!(angles(linear(4.0), 4), angles(linear(1.0), 4));
    }

    #[test]
    fn yarn_keeps_fast_pairs_and_divides_slow_ones() {
        let yarn = Yarn {
            factor: 2.0,
            original_context: 4096,
            beta_fast: 32.0,
            beta_slow: 1.0,
            attention_factor: 1.0,
        };
        let magnitude = 1.0 + 0.1 * std::f32::consts::LN_2;
        let extended = angles(Scaling::Yarn(yarn), 1);
        let plain = |position| angles(Scaling::Linear { factor: 1.0 }, position);
        let (fast, slow) = (&extended[..2], &extended[62..]);
        for (fast, plain) in fast.iter().zip(plain(1)) {
            assert!((fast - magnitude * plain).abs() < 1e-6, "the fastest pair");
        }
        // The slowest pair turns at half the speed: it reaches at position 2 its former angle at position 1.
        let yarn = Scaling::Yarn(Yarn {
            factor: 2.0,
            original_context: 4096,
            beta_fast: 32.0,
            beta_slow: 1.0,
            attention_factor: 1.0,
        });
        let at_two = angles(yarn, 2);
        for (slow, plain) in at_two.iter().zip(plain(1)).skip(62) {
            assert!((slow - magnitude * plain).abs() < 1e-7, "the slowest pair");
        }
        assert!(slow[1] < at_two[63]);
    }

    #[test]
    fn yarns_ramp_begins_at_a_whole_pair_and_its_magnitude_is_scaled() {
        let extended = |attention_factor| {
            let yarn = Yarn {
                factor: 2.0,
                original_context: 4096,
                beta_fast: 32.0,
                beta_slow: 1.0,
                attention_factor,
            };
            angles(Scaling::Yarn(yarn), 1)
        };
        // From pair 10.47, so 10, to pair 22.5, so 23: pair 11 is a thirteenth on the way to half its frequency.
        let angle = 10_000_f64.powf(-22.0 / 64.0) * 25.0 / 26.0;
        let magnitude = 1.0 + 0.1 * std::f64::consts::LN_2;
        let (once, twice) = (extended(1.0), extended(2.0));
        assert!((f64::from(once[22]) - magnitude * angle.cos()).abs() < 1e-7);
        assert!((f64::from(once[23]) - magnitude * angle.sin()).abs() < 1e-7);
        for (once, twice) in once.iter().zip(twice) {
            assert!(
                (twice - 2.0 * once).abs() < 1e-6,
                "{twice} for twice {once}"
            );
        }
    }

    #[test]
    fn far_positions_have_exact_angles() {
        // In f32 an angle of 123,457 · 10,000^(-1/32) is off by some thousandths.
        let found = angles(Scaling::Linear { factor: 1.0 }, 123_457);
        let angle = 123_457.0 * 10_000_f64.powf(-2.0 / 64.0);
        assert!((f64::from(found[2]) - angle.cos()).abs() < 1e-6);
        assert!((f64::from(found[3]) - angle.sin()).abs() < 1e-6);
    }
}
