//! What tests set by variables of the environment, in debug builds alone.

/// The number in this variable.
pub fn test_setting(variable: &str) -> Option<u64> {
    if !cfg!(debug_assertions) {
        return None;
    }
    std::env::var(variable).ok()?.parse().ok()
}
