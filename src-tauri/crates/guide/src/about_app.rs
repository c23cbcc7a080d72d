//! Classifies texts as about the app or not: logistic regression over their terms.

use crate::words::ByHash;

/// Passes over the texts, and the first one's learning rate.
const PASSES: usize = 6;
const RATE: f32 = 1.0;
/// Learning rate of the bias, as a share of that of the terms.
const BIAS_RATE: f32 = 0.1;
/// Stride by which the texts are visited, a prime: neighbours are alike, and the order is the same in every run.
const STRIDE: usize = 1_000_003;

/// A weight for each term.
pub struct AboutApp {
    weights: ByHash<f32>,
    bias: f32,
}

impl AboutApp {
    /// Learns from texts, each by its terms and with whether it is about the app.
    pub fn new(texts: &[(Vec<u64>, bool)]) -> Self {
        let mut numbers = ByHash::default();
        let samples: Vec<(Vec<usize>, bool)> = texts
            .iter()
            .map(|(terms, is_about_app)| (numbered(terms, &mut numbers), *is_about_app))
            .collect();
        let mut weights = vec![0.0; numbers.len()];
        let mut bias = 0.0;
        let mut at = 0;
        for pass in 0..PASSES {
            let rate = RATE / (1 + pass) as f32;
            for _ in 0..samples.len() {
                at = (at + STRIDE) % samples.len();
                let (terms, is_about_app) = &samples[at];
                let scale = scale(terms.len());
                let sum: f32 = terms.iter().map(|&term| weights[term]).sum();
                let probability = 1.0 / (1.0 + (-bias - sum * scale).exp());
                let step = rate * (f32::from(u8::from(*is_about_app)) - probability);
                bias += step * BIAS_RATE;
                for &term in terms {
                    weights[term] += step * scale;
                }
            }
        }
        let weights = numbers
            .into_iter()
            .map(|(term, number)| (term, weights[number]))
            .collect();
        Self { weights, bias }
    }

    /// Returns the log-odds that a text with these terms is about the app.
    pub fn log_odds(&self, terms: &[u64]) -> f32 {
        let weights = terms.iter().filter_map(|term| self.weights.get(term));
        self.bias + weights.sum::<f32>() * scale(terms.len())
    }
}

fn numbered(terms: &[u64], numbers: &mut ByHash<usize>) -> Vec<usize> {
    let number = |term: &u64| {
        let next = numbers.len();
        *numbers.entry(*term).or_insert(next)
    };
    terms.iter().map(number).collect()
}

/// Returns the value of each term of a text, so that long texts weigh no more than short ones.
fn scale(terms: usize) -> f32 {
    1.0 / (terms.max(1) as f32).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::{terms, words};

    #[test]
    fn it_tells_what_it_has_learnt_and_is_the_same_in_every_run() {
        let terms_of = |text: &str| terms(&words(text));
        let learn = || {
            let own = ["delete a chat", "export a chat", "stop the answer"];
            let other = ["delete a file", "bake a cake", "stop the car"];
            let own = own.map(|text| (terms_of(text), true));
            let other = other.map(|text| (terms_of(text), false));
            AboutApp::new(&[own, other].concat())
        };
        let log_odds = |text| learn().log_odds(&terms_of(text));
        assert!(log_odds("delete the chat") > 0.0);
        assert!(log_odds("delete the cake") < 0.0);
        assert_eq!(log_odds("stop the chat"), log_odds("stop the chat"));
    }
}
