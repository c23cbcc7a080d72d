//! Fallible allocation, for sizes that follow from a model, its context or a batch: out of memory is then an error of
//! opening or of a pass, and the process survives.

/// The system has no memory left for an allocation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the system has no {} MB of memory left", bytes.div_ceil(1 << 20))]
pub struct OutOfMemory {
    /// Size of the allocation in bytes.
    pub bytes: usize,
}

/// Reserves capacity for `len` values in all.
///
/// # Errors
/// Fails if the system has no memory left; `values` is unchanged then.
pub fn reserve<T>(values: &mut Vec<T>, len: usize) -> Result<(), OutOfMemory> {
    let missing = len.saturating_sub(values.len());
    values.try_reserve_exact(missing).map_err(|_| OutOfMemory {
        bytes: len.saturating_mul(size_of::<T>()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impossible_size_is_an_error_and_keeps_the_values() {
        let absurd = isize::MAX as usize / 2;
        let mut values = vec![7_u32];
        assert_eq!(
            reserve(&mut values, absurd / 4),
            Err(OutOfMemory {
                bytes: absurd / 4 * 4
            })
        );
        assert!(reserve(&mut values, usize::MAX).is_err());
        assert_eq!(values, [7]);
        reserve(&mut values, 3).expect("memory");
        assert!(values.capacity() >= 3);
    }
}
