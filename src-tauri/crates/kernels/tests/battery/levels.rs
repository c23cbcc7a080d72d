//! Which levels are found.

use kernels::CpuLevel;

/// Where a script plays a machine, it foretells the best level of it.
#[test]
fn the_best_level_is_the_one_foretold() {
    let Ok(word) = std::env::var("GOLDCREST_NEED_LEVEL") else {
        return;
    };
    assert_eq!(CpuLevel::best().keyword(), word);
}
