//! xoshiro256++ (Blackman and Vigna, public domain), seeded through SplitMix64: the same seed gives the same
//! answer on every machine.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A small pseudo-random generator. Not cryptographically secure.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// Makes a generator with this seed.
    pub fn new(seed: u64) -> Random {
        let mut mix = seed;
        let state = std::array::from_fn(|_| {
            mix = mix.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (mix ^ (mix >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        });
        Random { state }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let out = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// A number in `[0, 1)`.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A random seed of 32 bits, which every number format on the way to the UI represents exactly.
pub fn random_seed() -> u64 {
    RandomState::new().build_hasher().finish() & u64::from(u32::MAX)
}
