//! Whole models: against exact logits, against another implementation, and the tiny model's own words.

mod context;
mod families;
mod fidelity;
mod files;
mod formats;
mod freed_gpu_memory;
mod generate;
mod golden;
#[cfg(unix)]
mod hostile;
mod iq4;
mod reference;
mod refused;
mod split;
