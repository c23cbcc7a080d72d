//! Settings of tests, by environment variables, in debug builds only.

/// Returns the number in this variable.
pub fn test_setting(variable: &str) -> Option<u64> {
    if !cfg!(debug_assertions) {
        return None;
    }
    std::env::var(variable).ok()?.parse().ok()
}
