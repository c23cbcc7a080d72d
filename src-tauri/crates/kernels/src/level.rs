//! Instruction-set levels, detected at run time.

use std::env::VarError;
use std::fmt;
use std::str::FromStr;

/// An instruction-set level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CpuLevel {
    /// Portable Rust: the reference for every other level.
    Scalar,
    /// AVX2, FMA and F16C.
    Avx2,
    /// AVX2 with the 256-bit int8 dot product.
    AvxVnni,
    /// AVX-512 F, BW, VL and VNNI.
    Avx512,
    /// AVX-512 with AMX's bf16 tiles.
    Amx,
    /// aarch64's base vector instructions.
    Neon,
    /// NEON with the int8 dot product.
    NeonDotprod,
    /// NEON with the int8 dot product and matrix product.
    NeonI8mm,
}

impl CpuLevel {
    /// The environment variable that selects a level below the best.
    pub const VARIABLE: &str = "GOLDCREST_CPU";

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

    /// The highest level that this machine has and these kernels use.
    pub fn best() -> Self {
        Self::available().pop().unwrap_or(CpuLevel::Scalar)
    }

    /// Returns the level that `GOLDCREST_CPU` names, or else the best.
    ///
    /// # Errors
    /// Fails if the variable names no level, or one that this machine lacks.
    pub fn detect() -> Result<Self, CpuLevelError> {
        match std::env::var(Self::VARIABLE) {
            Ok(word) if !word.is_empty() => word.parse::<Self>()?.checked(),
            Ok(_) | Err(VarError::NotPresent) => Ok(Self::best()),
            Err(VarError::NotUnicode(word)) => {
                Err(CpuLevelError::Unknown(word.to_string_lossy().into_owned()))
            }
        }
    }

    /// Returns this level if the machine has it.
    ///
    /// # Errors
    /// Fails if the machine lacks it.
    pub fn checked(self) -> Result<Self, CpuLevelError> {
        if self.is_available() {
            Ok(self)
        } else {
            Err(CpuLevelError::Missing(self))
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
        let avx512 = || {
            avx2()
                && is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512vnni")
        };
        match self {
            CpuLevel::Scalar => true,
            CpuLevel::Avx2 => avx2(),
            CpuLevel::AvxVnni => avx2() && is_x86_feature_detected!("avxvnni"),
            CpuLevel::Avx512 => avx512(),
            CpuLevel::Amx => avx512() && crate::isa::amx::permitted(),
            _ => false,
        }
    }

    #[cfg(target_arch = "aarch64")]
    fn is_available(self) -> bool {
        use std::arch::is_aarch64_feature_detected;
        let dotprod = || is_aarch64_feature_detected!("dotprod");
        match self {
            CpuLevel::Scalar | CpuLevel::Neon => true,
            CpuLevel::NeonDotprod => dotprod(),
            CpuLevel::NeonI8mm => dotprod() && is_aarch64_feature_detected!("i8mm"),
            _ => false,
        }
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn is_available(self) -> bool {
        self == CpuLevel::Scalar
    }

    /// The display name.
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

    /// The value of `GOLDCREST_CPU`.
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

/// A CPU level that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CpuLevelError {
    /// The text names no level.
    #[error("`{0}` is not a CPU level; this machine has {here}", here = keywords_available())]
    Unknown(String),
    /// The machine does not have the level's instructions.
    #[error("this machine has no {word}; it has {here}", word = .0.keyword(), here = keywords_available())]
    Missing(CpuLevel),
}

/// The levels of this machine, as values of `GOLDCREST_CPU`.
fn keywords_available() -> String {
    let words: Vec<&str> = CpuLevel::available()
        .into_iter()
        .map(CpuLevel::keyword)
        .collect();
    words.join(", ")
}

impl FromStr for CpuLevel {
    type Err = CpuLevelError;

    fn from_str(word: &str) -> Result<Self, CpuLevelError> {
        Self::ALL
            .into_iter()
            .find(|level| level.keyword().eq_ignore_ascii_case(word))
            .ok_or_else(|| CpuLevelError::Unknown(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_parsed_from_its_keyword() {
        for level in CpuLevel::ALL {
            assert_eq!(level.keyword().parse(), Ok(level));
            assert_eq!(level.keyword().to_uppercase().parse(), Ok(level));
        }
    }

    #[test]
    fn an_error_names_the_level_and_those_of_the_machine() {
        let here = CpuLevel::available();
        assert_eq!(here.last(), Some(&CpuLevel::best()));
        for word in ["sse9", "AVX-512 VNNI", "avx512 "] {
            let error = word.parse::<CpuLevel>().expect_err("not a level");
            let sentence = error.to_string();
            assert!(sentence.starts_with(&format!("`{word}` is not a CPU level")));
            assert!(here.iter().all(|level| sentence.contains(level.keyword())));
        }
        for level in CpuLevel::ALL {
            match level.checked() {
                Ok(found) => assert!(found == level && here.contains(&level)),
                Err(error) => {
                    assert!(!here.contains(&level));
                    let sentence = error.to_string();
                    assert!(
                        sentence.starts_with(&format!("this machine has no {};", level.keyword()))
                            && sentence.ends_with(&keywords_available()),
                        "{sentence}"
                    );
                }
            }
        }
    }
}
