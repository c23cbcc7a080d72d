//! Log-probabilities of tokens by the model alone, before a form, penalties or the sampler change them.

use inference::Event;

/// The distribution of a token.
pub(crate) struct Logprobs {
    /// Likeliest tokens that are reported with it, at most.
    most: usize,
    logits: Vec<f32>,
    /// Logarithm of the sum of all exponentials.
    log_sum: f32,
}

impl Logprobs {
    pub fn new(most: usize) -> Logprobs {
        Logprobs {
            most,
            logits: Vec::new(),
            log_sum: 0.0,
        }
    }

    /// Reads the logits `[vocab]` of the next token.
    pub fn read(&mut self, logits: &[f32]) {
        self.logits.clear();
        self.logits.extend_from_slice(logits);
        let peak = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let exponentials = logits.iter().map(|it| f64::from(it - peak).exp());
        let sum: f64 = exponentials.sum();
        self.log_sum = peak + sum.ln() as f32;
    }

    /// Reports a token that was sampled from the logits read last, or one that nothing else could follow.
    pub fn report(&self, id: u32, is_forced: bool, on_event: &mut dyn FnMut(Event<'_>)) {
        if is_forced {
            let (logprob, top) = (0.0, &[(id, 0.0)][..self.most.min(1)]);
            return on_event(Event::Logprobs { id, logprob, top });
        }
        let logprob = |logit: f32| logit - self.log_sum;
        let mut top: Vec<(u32, f32)> = Vec::with_capacity(self.most + 1);
        for (at, &logit) in (0..).zip(&self.logits) {
            if top.len() == self.most && top.last().is_none_or(|(_, least)| logit <= *least) {
                continue;
            }
            let after = top.partition_point(|(_, other)| *other >= logit);
            top.insert(after, (at, logit));
            top.truncate(self.most);
        }
        for (_, logit) in &mut top {
            *logit = logprob(*logit);
        }
        let own = self.logits.get(id as usize);
        let (logprob, top) = (own.copied().map_or(f32::NEG_INFINITY, logprob), &top[..]);
        on_event(Event::Logprobs { id, logprob, top });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(logprobs: &Logprobs, id: u32, is_forced: bool) -> (f32, Vec<(u32, f32)>) {
        let mut found = None;
        logprobs.report(id, is_forced, &mut |event| {
            if let Event::Logprobs { logprob, top, .. } = event {
                found = Some((logprob, top.to_vec()));
            }
        });
        found.expect("an event")
    }

    #[test]
    fn a_token_has_its_probability_and_the_likeliest_others() {
        let probabilities = [0.1f32, 0.4, 0.2, 0.05, 0.25];
        let mut logprobs = Logprobs::new(3);
        // A constant changes nothing.
        let logits: Vec<f32> = probabilities.iter().map(|p| p.ln() + 7.0).collect();
        logprobs.read(&logits);
        let (own, top) = reported(&logprobs, 3, false);
        assert!((own.exp() - 0.05).abs() < 1e-6);
        let ids: Vec<u32> = top.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, [1, 4, 2]);
        for (id, logprob) in top {
            let expected = probabilities[id as usize];
            assert!((logprob.exp() - expected).abs() < 1e-6);
        }
        assert_eq!(reported(&logprobs, 2, true), (0.0, vec![(2, 0.0)]));
        let none = Logprobs {
            most: 0,
            ..logprobs
        };
        assert_eq!(reported(&none, 1, false).1, []);
        assert_eq!(reported(&none, 1, true).1, []);
    }
}
