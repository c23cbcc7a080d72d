//! The search for the scale of a group of weights.
//!
//! For given integers the best scale, or scale and minimum, is a linear regression with a closed form; for a given
//! scale the best integers are the nearest ones. A few inverse scales around the one that maps the group's range onto
//! the integers are tried, and from the best of them both steps alternate (Lloyd's algorithm) while the error falls.
//! All weights of a group count alike: the search minimises the sum of squared errors. Weighting them by their size, as
//! llama.cpp does, gave no better logits (`benches/record/README.md`).

/// Number of partial sums, so that the compiler uses vectors for them.
const LANES: usize = 8;
/// Range of the search around the plain inverse scale, in integers of the range, and its step.
const AROUND: f32 = 1.0;
const STEP: f32 = 0.1;
const STEPS: usize = 20;
/// Alternations after the search. More have no measurable effect.
const ALTERNATIONS: usize = 3;

/// Returns the nearest integer, ties to even, of a number below 2²²; larger ones stay larger than any integer of a
/// block.
#[inline(always)]
pub(crate) fn nearest(x: f32) -> f32 {
    const MAGIC: f32 = 12_582_912.0;
    (x + MAGIC) - MAGIC
}

/// Sums the results of `terms` over all values, in lanes.
#[inline(always)]
fn sums<const COUNT: usize>(x: &[f32], mut terms: impl FnMut(f32) -> [f32; COUNT]) -> [f32; COUNT] {
    let mut lanes = [[0.0f32; LANES]; COUNT];
    for chunk in x.as_chunks::<LANES>().0 {
        for (lane, &value) in chunk.iter().enumerate() {
            let terms = terms(value);
            for (sums, term) in lanes.iter_mut().zip(terms) {
                sums[lane] += term;
            }
        }
    }
    lanes.map(|lanes| lanes.iter().sum())
}

/// `x ≈ scale · q − min` with `q` in `0..=levels`, both not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Affine {
    pub(crate) scale: f32,
    pub(crate) min: f32,
}

/// Returns the nearest integer of a value in an affine group, as a float.
#[inline(always)]
pub(crate) fn affine_level(x: f32, inverse: f32, min: f32, levels: f32) -> f32 {
    nearest((x + min) * inverse).clamp(0.0, levels)
}

/// Returns the scale and minimum of a group, whose length is a multiple of 8.
pub(crate) fn fit_affine(x: &[f32], levels: f32) -> Affine {
    let (mut least, mut most) = (0.0f32, f32::NEG_INFINITY);
    for &value in x {
        least = least.min(value);
        most = most.max(value);
    }
    let range = most - least;
    if range <= f32::MIN_POSITIVE {
        return Affine {
            scale: 0.0,
            min: -least,
        };
    }
    let n = x.len() as f32;
    let [sum_x, sum_xx] = sums(x, |x| [x, x * x]);
    // The regression over the integers for an inverse scale and a minimum, and its squared error.
    let regress = |inverse: f32, min: f32| {
        let [q, qq, qx] = sums(x, |x| {
            let q = affine_level(x, inverse, min, levels);
            [q, q * q, q * x]
        });
        let determinant = n * qq - q * q;
        if determinant <= 0.0 {
            return None;
        }
        let scale = (n * qx - sum_x * q) / determinant;
        let min = (q * qx - qq * sum_x) / determinant;
        let fit = if min >= 0.0 {
            Affine { scale, min }
        } else {
            let scale = qx / qq;
            Affine { scale, min: 0.0 }
        };
        let error = sum_xx - fit.scale * qx + fit.min * sum_x;
        (fit.scale > 0.0).then_some((error, fit))
    };
    let plain = Affine {
        scale: range / levels,
        min: -least,
    };
    let mut best = (f32::INFINITY, plain);
    for step in 0..=STEPS {
        let inverse = (levels - AROUND + STEP * step as f32) / range;
        let found = regress(inverse, -least);
        best = found.filter(|found| found.0 < best.0).unwrap_or(best);
    }
    for _ in 0..ALTERNATIONS {
        match regress(1.0 / best.1.scale, best.1.min).filter(|found| found.0 < best.0) {
            Some(found) => best = found,
            None => break,
        }
    }
    best.1
}

/// Returns the squared error of a group stored with this scale and minimum.
pub(crate) fn affine_error(x: &[f32], Affine { scale, min }: Affine, levels: f32) -> f32 {
    let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
    let [error] = sums(x, |x| {
        let q = affine_level(x, inverse, min, levels);
        let off = scale * q - min - x;
        [off * off]
    });
    error
}

/// Returns the nearest integer of a value in a symmetric group, as a float.
#[inline(always)]
pub(crate) fn symmetric_level(x: f32, inverse: f32, levels: f32) -> f32 {
    nearest(x * inverse).clamp(-levels, levels - 1.0)
}

/// Returns the scale of a group for which `x ≈ scale · q` with `q` in `-levels..levels`; of either sign, since there is
/// one integer more below zero than above.
pub(crate) fn fit_symmetric(x: &[f32], levels: f32) -> f32 {
    let largest = x.iter().copied().fold(0.0f32, |largest, value| {
        if value.abs() > largest.abs() {
            value
        } else {
            largest
        }
    });
    if largest.abs() <= f32::MIN_POSITIVE {
        return 0.0;
    }
    // The reduction of the squared error by the best scale for these integers, and the scale.
    let regress = |inverse: f32| {
        let [qq, qx] = sums(x, |x| {
            let q = symmetric_level(x, inverse, levels);
            [q * q, q * x]
        });
        (qq > 0.0).then(|| (qx * qx / qq, qx / qq))
    };
    let mut best = (0.0, largest / -levels);
    for sign in [-1.0, 1.0] {
        for step in 0..=STEPS {
            let inverse = sign * (levels - AROUND + STEP * step as f32) / largest;
            if let Some(found) = regress(inverse).filter(|found| found.0 > best.0) {
                best = found;
            }
        }
    }
    for _ in 0..ALTERNATIONS {
        match regress(1.0 / best.1).filter(|found| found.0 > best.0) {
            Some(found) => best = found,
            None => break,
        }
    }
    best.1
}

/// Returns the squared error of a group stored with this scale.
pub(crate) fn symmetric_error(x: &[f32], scale: f32, levels: f32) -> f32 {
    let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
    let [error] = sums(x, |x| {
        let off = scale * symmetric_level(x, inverse, levels) - x;
        [off * off]
    });
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_on_a_grid_is_found_exactly() {
        let x: Vec<f32> = (0..32)
            .map(|i| 0.25 * ((i * 7) % 16) as f32 - 1.5)
            .collect();
        let fit = fit_affine(&x, 15.0);
        assert!(
            (fit.scale - 0.25).abs() < 1e-5 && (fit.min - 1.5).abs() < 1e-4,
            "{fit:?}"
        );
        assert!(affine_error(&x, fit, 15.0) < 1e-8);
        let x: Vec<f32> = (0..16).map(|i| 0.5 * (i * 4 - 32) as f32).collect();
        let scale = fit_symmetric(&x, 32.0);
        assert!(symmetric_error(&x, scale, 32.0) < 1e-6, "{scale}");
    }

    #[test]
    fn constant_groups_have_a_fit() {
        assert_eq!(
            fit_affine(&[0.0; 32], 15.0),
            Affine {
                scale: 0.0,
                min: 0.0
            }
        );
        for value in [-3.0, 3.0, 1e-30, -1e30] {
            let fit = fit_affine(&[value; 32], 15.0);
            let error = affine_error(&[value; 32], fit, 15.0);
            assert!(
                error <= 1e-9 * 32.0 * value * value,
                "{value}: {fit:?} {error}"
            );
        }
        assert_eq!(fit_symmetric(&[0.0; 16], 32.0), 0.0);
    }
}
