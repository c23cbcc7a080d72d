//! Operations of a level whose errors the tests of products and attention would miss.

use super::scalar::Scalar;
use super::{Isa, LANES};
use crate::level::CpuLevel;

type Exp = fn(&[f32; LANES]) -> [f32; LANES];

fn exp<S: Isa>(x: &[f32; LANES]) -> [f32; LANES] {
    let mut y = [0.0; LANES];
    // SAFETY: `at` picks only among this machine's levels; both arrays have 16 lanes.
    unsafe { S::store(y.as_mut_ptr(), S::exp(S::load(x.as_ptr()))) };
    y
}

fn at(level: CpuLevel) -> Exp {
    match level.checked().expect("a level of this machine") {
        #[cfg(target_arch = "x86_64")]
        CpuLevel::Avx2 => exp::<super::avx2::Avx2<false>>,
        #[cfg(target_arch = "x86_64")]
        CpuLevel::AvxVnni => exp::<super::avx2::Avx2<true>>,
        #[cfg(target_arch = "x86_64")]
        CpuLevel::Avx512 | CpuLevel::Amx => exp::<super::avx512::Avx512>,
        #[cfg(target_arch = "aarch64")]
        CpuLevel::Neon => exp::<super::neon::Neon<false>>,
        #[cfg(target_arch = "aarch64")]
        CpuLevel::NeonDotprod | CpuLevel::NeonI8mm => exp::<super::neon::Neon<true>>,
        _ => exp::<Scalar>,
    }
}

#[test]
fn the_exponential_has_the_documented_error() {
    const STEP: f32 = 1.0 / 512.0;
    for level in CpuLevel::available() {
        let exp = at(level);
        for vector in -87 * 32..88 * 32 {
            let x = std::array::from_fn(|lane| (vector * 16 + lane as i32) as f32 * STEP);
            for (x, y) in x.into_iter().zip(exp(&x)) {
                let error = (f64::from(y) / f64::from(x).exp() - 1.0).abs();
                assert!(error < 4e-7, "{level}: e^{x} is off by {error}");
            }
        }
        for x in [-87.1, -104.0, -1e9, f32::MIN, f32::NEG_INFINITY] {
            let least = exp(&[x; LANES])[0];
            assert!((0.0..2e-38).contains(&least), "{level}: e^{x} is {least}");
        }
        assert_eq!(exp(&[0.0; LANES]), [1.0; LANES], "{level}");
    }
}
