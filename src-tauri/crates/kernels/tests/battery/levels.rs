//! Detection of levels.

use kernels::CpuLevel;

/// A script that emulates a CPU sets the level to expect.
#[test]
fn the_best_level_is_the_expected_one() {
    let Ok(word) = std::env::var("GOLDCREST_NEED_LEVEL") else {
        return;
    };
    assert_eq!(CpuLevel::best().keyword(), word);
}
