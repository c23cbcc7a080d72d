//! The two limits of a machine in the roofline model: memory bandwidth and integer arithmetic.

pub(crate) mod arithmetic;
pub(crate) mod bandwidth;
