//! The topic of a question, by BM25 over the topics' wordings, and whether the question is about the app at all.
//!
//! A document of BM25 is a topic: its title and all its wordings. The features are words, pairs of neighbours, and runs of
//! three characters, by which misspelt and inflected words are found.

use std::collections::HashSet;

use crate::about_app::AboutApp;
use crate::pages::Topic;
use crate::words::{ByHash, features, hash, terms, words};

/// BM25's saturation of repetitions and its regard for the length of a topic.
const SATURATION: f32 = 1.8;
const LENGTH: f32 = 0.6;

/// Least distance of the best topic from the second, as a share of its score, for a sure match.
const SURE_LEAD: f32 = 0.12;
/// Least evidence for a sure match and for an unsure one, found with the tests' development sets.
const SURE: f32 = 7.5;
const UNSURE: f32 = 5.0;
/// Weight of the coverage in the evidence, beside the log-odds.
const COVERAGE: f32 = 4.0;
/// Least number of words of a wording that is sure by itself: fewer may be part of any conversation. A question with fewer
/// is sure only if it is a wording and has the evidence, too.
const EXACT: usize = 3;

/// Index of the wordings.
pub struct Matcher {
    topics: usize,
    features: ByHash<Feature>,
    /// Weight of a feature that no topic has.
    unknown_weight: f32,
    about_app: AboutApp,
    /// Topic of each wording, by the hash of its words.
    exact: ByHash<usize>,
}

/// A feature: its weight, and what it adds to the score of each topic that has it.
struct Feature {
    weight: f32,
    topics: Vec<(usize, f32)>,
}

/// The topic that was found, by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    Sure(usize),
    Unsure(usize),
    None,
}

impl Matcher {
    /// Builds the index; `other` has requests that are not about the app, one a line.
    pub fn new(topics: &[Topic], other: &str) -> Self {
        let mut exact = ByHash::default();
        let mut occurrences: Vec<(u64, usize)> = Vec::new();
        let mut texts = Vec::new();
        for (at, topic) in topics.iter().enumerate() {
            for text in topic.texts() {
                let words = words(text);
                let terms = terms(&words);
                exact.insert(hash(&[words.join(" ").as_bytes()]), at);
                let features = features(&words, &terms);
                occurrences.extend(features.into_iter().map(|feature| (feature, at)));
                texts.push((terms, true));
            }
        }
        texts.extend(other.lines().map(|line| (terms(&words(line)), false)));
        occurrences.sort_unstable();
        Self {
            topics: topics.len(),
            features: weighted(&occurrences, topics.len()),
            unknown_weight: weight(0, topics.len()),
            about_app: AboutApp::new(&texts),
            exact,
        }
    }

    /// Finds the topic of a question.
    pub fn find(&self, question: &str) -> Evidence {
        let words = words(question);
        let is_short = words.iter().collect::<HashSet<_>>().len() < EXACT;
        let exact = self
            .exact
            .get(&hash(&[words.join(" ").as_bytes()]))
            .copied();
        if let (Some(at), false) = (exact, is_short) {
            return Evidence::Sure(at);
        }
        let (scores, possible) = self.scores(&words);
        let mut best = (0, 0.0);
        let mut second = 0.0;
        for (at, &score) in scores.iter().enumerate() {
            if score > best.1 {
                second = best.1;
                best = (at, score);
            } else if score > second {
                second = score;
            }
        }
        let (at, score) = best;
        if score <= 0.0 {
            return Evidence::None;
        }
        let evidence = COVERAGE * score / possible + self.about_app.log_odds(&terms(&words));
        let lead = (score - second) / score;
        match evidence {
            _ if evidence >= SURE && lead >= SURE_LEAD && (!is_short || exact == Some(at)) => {
                Evidence::Sure(at)
            }
            _ if evidence >= UNSURE => Evidence::Unsure(at),
            _ => Evidence::None,
        }
    }

    /// Returns the topics that share a feature with the text, the best first.
    pub fn ranked(&self, text: &str) -> Vec<usize> {
        let (scores, _) = self.scores(&words(text));
        let mut ranked: Vec<usize> = (0..scores.len()).filter(|&at| scores[at] > 0.0).collect();
        ranked.sort_by(|&one, &other| scores[other].total_cmp(&scores[one]));
        ranked
    }

    /// Returns the score of each topic, and the sum of the weights of all features of the text.
    fn scores(&self, words: &[String]) -> (Vec<f32>, f32) {
        let mut scores = vec![0.0; self.topics];
        let mut possible = 0.0;
        for hash in features(words, &terms(words)) {
            let Some(feature) = self.features.get(&hash) else {
                possible += self.unknown_weight;
                continue;
            };
            possible += feature.weight;
            for &(at, score) in &feature.topics {
                scores[at] += score;
            }
        }
        (scores, possible)
    }
}

/// Computes what each feature adds to the score of each topic, from sorted occurrences.
fn weighted(occurrences: &[(u64, usize)], topics: usize) -> ByHash<Feature> {
    let mut lengths = vec![0_u32; topics];
    for (_, at) in occurrences {
        lengths[*at] += 1;
    }
    let average = occurrences.len() as f32 / topics as f32;
    let score = |at: usize, count: usize| {
        let count = count as f32;
        let relative = lengths[at] as f32 / average;
        count * (SATURATION + 1.0) / (count + SATURATION * (1.0 - LENGTH + LENGTH * relative))
    };
    occurrences
        .chunk_by(|one, other| one.0 == other.0)
        .map(|of_feature| {
            let by_topic = of_feature.chunk_by(|one, other| one.1 == other.1);
            let mut topics_of: Vec<(usize, f32)> = by_topic
                .map(|same| (same[0].1, score(same[0].1, same.len())))
                .collect();
            let weight = weight(topics_of.len(), topics);
            for (_, score) in &mut topics_of {
                *score *= weight;
            }
            let feature = Feature {
                weight,
                topics: topics_of,
            };
            (of_feature[0].0, feature)
        })
        .collect()
}

/// Computes the inverse document frequency of a feature that `of` topics of `topics` have.
fn weight(of: usize, topics: usize) -> f32 {
    let (of, topics) = (of as f32, topics as f32);
    (1.0 + (topics - of + 0.5) / (of + 0.5)).ln()
}
