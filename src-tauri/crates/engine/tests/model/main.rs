//! Whole models: against exact logits, against another implementation, and the starter's own words.

mod fidelity;
mod files;
mod generate;
mod golden;
mod reference;
mod twin;
