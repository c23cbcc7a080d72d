//! Whole models: against exact logits, against another implementation, and the starter's own words.

mod fidelity;
mod generate;
mod golden;
mod reference;
mod twin;
