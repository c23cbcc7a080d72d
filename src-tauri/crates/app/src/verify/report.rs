//! The results of a comparison, in figures and in words.

use engine::{ActiveDevice, ModelSummary};
use reference::{Distance, DistanceSum, TopToken, log_softmax};
use serde::{Deserialize, Serialize};

/// Bounds on the distance from the exact logits by rounding alone: relative error, and mean KL divergence in nats. Both
/// sides round activations to 8 bits, and candle its output matrix too.
///
/// Measured relative error and mean KL, of the engine on AVX-512 and of candle: 1.2 % and 0.0008, 2.1 % and 0.0023 on
/// the bundled model; 2.4 % and 0.0003, 3.7 % and 0.0007 on the 3B shape with random weights; 5.2 % and 0.018, 8.4 % and
/// 0.048 on the tiny fixture with random weights, whose layers accumulate most rounding.
const MOST_RELATIVE_ERROR: f64 = 0.1;
const MOST_MEAN_KL: f64 = 0.06;

/// Running sums of three results, position by position.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    engine: DistanceSum,
    candle: DistanceSum,
    between: DistanceSum,
    /// Sum of the exact result's −ln p of the text's next tokens, and their number.
    surprise: f64,
    predicted: usize,
    /// True if a logit of the exact result is NaN or infinite.
    damaged: bool,
    partings: Vec<(usize, [TopToken; 2], [f64; 2])>,
    positions: usize,
}

impl Comparison {
    /// Adds the logits `[vocab]` of the next position, and the token that follows in the text.
    pub fn add(&mut self, engine: &[f32], candle: &[f32], exact: &[f32], next: Option<u32>) {
        self.engine.add(engine, exact);
        self.candle.add(candle, exact);
        self.between.add(engine, candle);
        self.damaged |= !exact.iter().all(|logit| logit.is_finite());
        let probabilities = log_softmax(exact);
        let of = |id: u32| probabilities.get(id as usize).copied();
        if let Some(probability) = next.and_then(of) {
            self.surprise -= probability;
            self.predicted += 1;
        }
        let tops = [engine, candle].map(TopToken::of);
        if tops[0].id != tops[1].id {
            let exact = tops.map(|top| of(top.id).unwrap_or(f64::NAN).exp());
            self.partings.push((self.positions, tops, exact));
        }
        self.positions += 1;
    }
}

/// Verdict on the two results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "specta", derive(specta::Type))]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// Both are as close to the exact result as rounding allows.
    Agree,
    /// Only candle is.
    EngineDiffers,
    /// Only the engine is.
    CandleDiffers,
    /// Neither is.
    BothDiffer,
    /// The exact result is NaN or infinite.
    Damaged,
}

impl Agreement {
    fn of(comparison: &Comparison) -> Agreement {
        let close = |sum: &DistanceSum| {
            let distance = sum.distance();
            distance.relative_error <= MOST_RELATIVE_ERROR && distance.mean_kl <= MOST_MEAN_KL
        };
        if comparison.damaged {
            return Agreement::Damaged;
        }
        match (close(&comparison.engine), close(&comparison.candle)) {
            (true, true) => Agreement::Agree,
            (false, true) => Agreement::EngineDiffers,
            (true, false) => Agreement::CandleDiffers,
            (false, false) => Agreement::BothDiffer,
        }
    }
}

/// Likeliest token of one side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// Its id.
    pub id: u32,
    /// Its text.
    pub text: String,
    /// Its probability by that side, from 0 to 1.
    pub probability: f64,
    /// Its probability by the exact result.
    pub exact_probability: f64,
}

/// A position after which the two sides expect different tokens.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parting {
    /// Its index in the text, in tokens from 0.
    pub position: usize,
    /// The text's token there.
    pub after: String,
    /// Prediction of the engine.
    pub engine: Prediction,
    /// Prediction of candle.
    pub candle: Prediction,
}

/// Report of `goldcrest verify`. Figures are null in JSON if they are NaN.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerifyReport {
    /// The model's name.
    pub model: String,
    /// Its most frequent type of weights, such as `Q4_K_M`.
    pub quantisation: String,
    /// `cpu` or `gpu`.
    pub device: &'static str,
    /// Display name of the engine's device.
    pub device_name: String,
    /// Reason for this device.
    pub device_reason: String,
    /// The CPU's instruction set level.
    pub cpu_level: &'static str,
    /// CPU threads.
    pub threads: usize,
    /// Tokens of the text that were read.
    pub tokens: usize,
    /// Perplexity of the text by the exact result.
    pub perplexity: f64,
    /// Distance of the engine, as the user runs it, from the exact result.
    pub engine: Distance,
    /// Distance of candle from the exact result.
    pub candle: Distance,
    /// Distance of the engine from candle.
    pub between: Distance,
    /// Positions at which the two predict different tokens.
    pub partings: Vec<Parting>,
    /// Verdict.
    pub verdict: Agreement,
    /// Verdict in words.
    pub sentence: String,
}

impl VerifyReport {
    /// Makes the report of a comparison over `tokens`, whose texts `text` gives.
    pub fn new(
        model: &ModelSummary,
        device: &ActiveDevice,
        device_reason: String,
        tokens: &[u32],
        comparison: &Comparison,
        text: &dyn Fn(u32) -> String,
    ) -> VerifyReport {
        let verdict = Agreement::of(comparison);
        let prediction = |top: &TopToken, exact_probability| Prediction {
            id: top.id,
            text: text(top.id),
            probability: top.probability,
            exact_probability,
        };
        let parting = |(position, tops, exact): &(usize, [TopToken; 2], [f64; 2])| Parting {
            position: *position,
            after: tokens
                .get(*position)
                .map(|&id| text(id))
                .unwrap_or_default(),
            engine: prediction(&tops[0], exact[0]),
            candle: prediction(&tops[1], exact[1]),
        };
        let (engine, candle) = (comparison.engine.distance(), comparison.candle.distance());
        VerifyReport {
            model: model.name.clone(),
            quantisation: model.quantisation.clone(),
            device: if device.on_gpu { "gpu" } else { "cpu" },
            device_name: device.name.clone(),
            device_reason,
            cpu_level: device.cpu_level.name(),
            threads: device.threads,
            tokens: comparison.positions,
            perplexity: (comparison.surprise / comparison.predicted as f64).exp(),
            engine,
            candle,
            between: comparison.between.distance(),
            partings: comparison.partings.iter().map(parting).collect(),
            verdict,
            sentence: sentence(verdict, device, engine, candle),
        }
    }

    /// Returns whether both sides are right.
    pub fn agrees(&self) -> bool {
        self.verdict == Agreement::Agree
    }
}

/// Returns the verdict in words.
fn sentence(
    verdict: Agreement,
    device: &ActiveDevice,
    engine: Distance,
    candle: Distance,
) -> String {
    let name = &device.name;
    let [engine, candle] = [engine, candle].map(|distance| percent(distance.relative_error));
    let limit = percent(MOST_RELATIVE_ERROR);
    match verdict {
        Agreement::Agree => format!(
            "Goldcrest and candle agree: both are as near to the exact result as rounding allows, Goldcrest {engine} off \
             on {name}, candle {candle}."
        ),
        Agreement::EngineDiffers => {
            let advice = if device.on_gpu {
                "--device cpu avoids this GPU"
            } else {
                "GOLDCREST_CPU=scalar avoids this CPU's vector instructions"
            };
            format!(
                "Goldcrest and candle do not agree: on {name} Goldcrest is {engine} off the exact result, and rounding \
                 explains {limit} at most; candle is {candle} off. {advice}."
            )
        }
        Agreement::CandleDiffers => format!(
            "Goldcrest and candle do not agree: candle is {candle} off what Goldcrest computes in f32, and rounding \
             explains {limit} at most; Goldcrest on {name} is {engine} off. One of the two programs is wrong about this \
             model, and the comparison cannot tell which."
        ),
        Agreement::BothDiffer => format!(
            "Goldcrest and candle do not agree: rounding explains {limit} at most, and Goldcrest on {name} is {engine} \
             off what it computes in f32, candle {candle}."
        ),
        Agreement::Damaged => {
            "The model's own result is NaN or infinite: the weights in this file are damaged."
                .to_owned()
        }
    }
}

/// Formats `0.01234` as `1.23 %`.
pub fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns random logits `[positions][vocab]`.
    fn logits() -> Vec<Vec<f32>> {
        let row = |position: u32| {
            let value = |id: u32| ((id * 7919 + position * 104_729) % 1000) as f32 / 100.0;
            (0..300).map(value).collect()
        };
        (0..10).map(row).collect()
    }

    fn rounded(logits: &[Vec<f32>], step: f32) -> Vec<Vec<f32>> {
        let round = |logit: &f32| (logit / step).round() * step;
        let rows = logits.iter();
        rows.map(|row| row.iter().map(round).collect()).collect()
    }

    fn compared(engine: &[Vec<f32>], candle: &[Vec<f32>], exact: &[Vec<f32>]) -> Comparison {
        let mut comparison = Comparison::default();
        for ((engine, candle), exact) in engine.iter().zip(candle).zip(exact) {
            comparison.add(engine, candle, exact, Some(3));
        }
        comparison
    }

    fn of(engine: &[Vec<f32>], candle: &[Vec<f32>], exact: &[Vec<f32>]) -> Agreement {
        Agreement::of(&compared(engine, candle, exact))
    }

    #[test]
    fn rounding_agrees_and_who_is_wrong_is_found() {
        let exact = logits();
        let near = rounded(&exact, 0.25);
        let mut wrong = exact.clone();
        for row in &mut wrong {
            row.rotate_right(1);
        }
        assert_eq!(of(&near, &exact, &exact), Agreement::Agree);
        assert_eq!(of(&wrong, &near, &exact), Agreement::EngineDiffers);
        assert_eq!(of(&near, &wrong, &exact), Agreement::CandleDiffers);
        assert_eq!(of(&wrong, &wrong, &exact), Agreement::BothDiffer);
        // One position of ten is enough.
        let mut once = exact.clone();
        once[4].fill(0.0);
        assert_eq!(of(&once, &near, &exact), Agreement::EngineDiffers);
    }

    #[test]
    fn nan_is_never_near() {
        let exact = logits();
        for wrong in [f32::NAN, f32::INFINITY] {
            let mut broken = exact.clone();
            broken[9][299] = wrong;
            assert_eq!(of(&broken, &exact, &exact), Agreement::EngineDiffers);
            assert_eq!(of(&exact, &broken, &exact), Agreement::CandleDiffers);
            assert_eq!(of(&exact, &exact, &broken), Agreement::Damaged);
        }
        assert_eq!(of(&[], &[], &[]), Agreement::BothDiffer);
    }

    #[test]
    fn positions_at_which_the_two_part_are_kept_with_their_probabilities() {
        let exact = [vec![0.0, 0.0], vec![0.0, 3f32.ln()]];
        let candle = [vec![0.0, 0.0], vec![3f32.ln(), 0.0]];
        let comparison = compared(&exact, &candle, &exact);
        let [(position, [ours, theirs], probabilities)] = &*comparison.partings else {
            panic!("{comparison:?}");
        };
        assert_eq!((*position, ours.id, theirs.id), (1, 1, 0));
        for (found, expected) in [
            (ours.probability, 0.75),
            (theirs.probability, 0.75),
            (probabilities[0], 0.75),
            (probabilities[1], 0.25),
        ] {
            assert!((found - expected).abs() < 1e-6, "{comparison:?}");
        }
        // A token that is not in the vocabulary is not predicted.
        assert_eq!(comparison.predicted, 0);
    }
}
