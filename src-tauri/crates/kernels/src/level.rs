//! Which instructions the kernels may use, found once at run time.

use std::fmt;
use std::str::FromStr;

/// A step of the instruction-set ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CpuLevel {
    /// Portable Rust; the twin that every other level is checked against.
    Scalar,
    /// AVX2, FMA and F16C.
    Avx2,
    /// AVX2 with the 256-bit int8 dot product.
    AvxVnni,
    /// AVX-512 F, BW, VL and VNNI.
    Avx512,
    /// AVX-512 with AMX int8 tiles.
    Amx,
    /// aarch64's base vector instructions.
    Neon,
    /// NEON with the int8 dot product.
    NeonDotprod,
    /// NEON with the int8 matrix product.
    NeonI8mm,
}

impl CpuLevel {
    /// Every level, lowest first within its architecture.
    pub const ALL: [CpuLevel; 8] = [
        CpuLevel::Scalar,
        CpuLevel::Avx2,
        CpuLevel::AvxVnni,
        CpuLevel::Avx512,
        CpuLevel::Amx,
        CpuLevel::Neon,
        CpuLevel::NeonDotprod,
        CpuLevel::NeonI8mm,
    ];

    /// The highest level that this machine has and these kernels use, or the one that
    /// `GOLDCREST_CPU` names if the machine has it.
    pub fn detect() -> Self {
        let wanted = std::env::var("GOLDCREST_CPU")
            .ok()
            .and_then(|name| name.parse().ok());
        match wanted {
            Some(level) if Self::available().contains(&level) => level,
            _ => Self::available().pop().unwrap_or(CpuLevel::Scalar),
        }
    }

    /// The levels that this machine can run, lowest first.
    pub fn available() -> Vec<Self> {
        Self::ALL
            .into_iter()
            .filter(|level| level.is_available())
            .collect()
    }

    #[cfg(target_arch = "x86_64")]
    fn is_available(self) -> bool {
        let avx2 = || {
            is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c")
        };
        match self {
            CpuLevel::Scalar => true,
            CpuLevel::Avx2 => avx2(),
            CpuLevel::AvxVnni => avx2() && is_x86_feature_detected!("avxvnni"),
            CpuLevel::Avx512 => {
                avx2()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512vnni")
            }
            _ => false,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn is_available(self) -> bool {
        self == CpuLevel::Scalar
    }

    /// The name as people write it.
    pub fn name(self) -> &'static str {
        match self {
            CpuLevel::Scalar => "scalar",
            CpuLevel::Avx2 => "AVX2",
            CpuLevel::AvxVnni => "AVX-VNNI",
            CpuLevel::Avx512 => "AVX-512 VNNI",
            CpuLevel::Amx => "AMX",
            CpuLevel::Neon => "NEON",
            CpuLevel::NeonDotprod => "NEON dotprod",
            CpuLevel::NeonI8mm => "NEON i8mm",
        }
    }

    /// The word that `GOLDCREST_CPU` takes.
    pub fn keyword(self) -> &'static str {
        match self {
            CpuLevel::Scalar => "scalar",
            CpuLevel::Avx2 => "avx2",
            CpuLevel::AvxVnni => "avxvnni",
            CpuLevel::Avx512 => "avx512",
            CpuLevel::Amx => "amx",
            CpuLevel::Neon => "neon",
            CpuLevel::NeonDotprod => "dotprod",
            CpuLevel::NeonI8mm => "i8mm",
        }
    }
}

impl fmt::Display for CpuLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text names no CPU level.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown CPU level {0:?}: expected scalar, avx2, avxvnni, avx512, amx, neon, dotprod or i8mm"
)]
pub struct UnknownCpuLevel(String);

impl FromStr for CpuLevel {
    type Err = UnknownCpuLevel;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|level| level.keyword().eq_ignore_ascii_case(s))
            .ok_or_else(|| UnknownCpuLevel(s.to_owned()))
    }
}
