use super::*;

fn greedy() -> Sampling {
    Sampling {
        temperature: 0.0,
        ..Sampling::default()
    }
}

/// Logits of the size of SmolLM3's vocabulary, roughly as peaked as a trained model's.
fn logits(seed: u64) -> Vec<f32> {
    let mut random = Random::new(seed);
    (0..128_256)
        .map(|_| {
            let sum: f64 = (0..4).map(|_| random.uniform()).sum();
            (sum * 8.0 - 16.0) as f32
        })
        .collect()
}

/// The chain as the papers state it: everything sorted, probabilities exact.
fn kept_by_sorting(logits: &[f32], sampling: &Sampling) -> Vec<u32> {
    let scaled: Vec<f64> = logits
        .iter()
        .map(|&l| f64::from(l) / f64::from(sampling.temperature))
        .collect();
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| scaled[b].total_cmp(&scaled[a]).then(a.cmp(&b)));
    if sampling.top_k > 0 {
        order.truncate(sampling.top_k);
    }
    let peak = scaled[order[0]];
    let weights: Vec<f64> = order.iter().map(|&id| (scaled[id] - peak).exp()).collect();
    let total: f64 = weights.iter().sum();
    let (mut sum, mut kept) = (0.0, Vec::new());
    for (&id, weight) in order.iter().zip(weights) {
        if sum >= f64::from(sampling.top_p) * total || weight < f64::from(sampling.min_p) {
            break;
        }
        sum += weight;
        kept.push(id as u32);
    }
    kept
}

#[test]
fn the_filters_keep_what_sorting_everything_would_keep() {
    let cases = [
        (0, 0.95, 0.0),
        (40, 0.9, 0.0),
        (40, 1.0, 0.0),
        (0, 0.5, 0.1),
        (5, 0.3, 0.2),
        (0, 0.999, 0.01),
    ];
    for (case, (top_k, top_p, min_p)) in cases.into_iter().enumerate() {
        let sampling = Sampling {
            top_k,
            top_p,
            min_p,
            ..Sampling::default()
        };
        let mut logits = logits(case as u64);
        let expected = kept_by_sorting(&logits, &sampling);
        let mut sampler = Sampler::new(sampling, 1);
        sampler.sample(&mut logits, &[]);
        let kept: Vec<u32> = sampler
            .candidates
            .iter()
            .map(|candidate| candidate.id)
            .collect();
        // The last token of the nucleus may fall to either side of the bound by rounding; the next test checks exact
        // bounds.
        let shorter = kept.len().min(expected.len());
        assert!(kept.len().max(expected.len()) <= shorter + 1, "case {case}");
        assert!(shorter >= 1, "case {case}: nothing to compare");
        assert_eq!(kept[..shorter], expected[..shorter], "case {case}");
    }
}

/// Logits with the weights ⅛, ½, ⅛ and ¼, exactly, and many others with none.
fn exact() -> Vec<f32> {
    let mut logits = vec![-200.0; 50];
    for (at, halvings) in [(3, 2.0), (11, 0.0), (20, 2.0), (40, 1.0)] {
        logits[at] = -halvings * std::f32::consts::LN_2;
    }
    logits
}

/// Ids that are kept, the likeliest first if a filter sorts them.
fn kept(sampling: Sampling) -> Vec<u32> {
    let mut sampler = Sampler::new(sampling, 1);
    sampler.sample(&mut exact(), &[]);
    sampler.candidates.iter().map(|it| it.id).collect()
}

#[test]
fn filters_keep_exactly_what_reaches_their_bounds() {
    let all = Sampling {
        temperature: 1.0,
        top_p: 1.0,
        ..Sampling::default()
    };
    assert_eq!(kept(all.clone()), [3, 11, 20, 40], "by their ids, unsorted");
    for (top_p, expected) in [
        (0.01, &[11][..]),
        (0.5, &[11]),
        (0.51, &[11, 40]),
        (0.75, &[11, 40]),
        (0.76, &[11, 40, 3]),
        (0.875, &[11, 40, 3]),
        (0.88, &[11, 40, 3, 20]),
    ] {
        let sampling = Sampling {
            top_p,
            ..all.clone()
        };
        assert_eq!(kept(sampling), expected, "top_p {top_p}");
    }
    for (top_k, expected) in [
        (1, &[11][..]),
        (2, &[11, 40]),
        // The first of two equal ones.
        (3, &[11, 40, 3]),
        (4, &[11, 40, 3, 20]),
        (0, &[3, 11, 20, 40]),
    ] {
        let sampling = Sampling {
            top_k,
            ..all.clone()
        };
        assert_eq!(kept(sampling), expected, "top_k {top_k}");
    }
    for (min_p, expected) in [
        (1.0, &[11][..]),
        (0.6, &[11]),
        (0.5, &[11, 40]),
        (0.3, &[11, 40]),
        (0.25, &[3, 11, 20, 40]),
    ] {
        let sampling = Sampling {
            min_p,
            ..all.clone()
        };
        assert_eq!(kept(sampling), expected, "min_p {min_p}");
    }
    // Together: the nucleus is a share of the tokens that top-k leaves, and min-p drops from it.
    let sampling = Sampling {
        top_k: 2,
        top_p: 0.6,
        ..all.clone()
    };
    assert_eq!(kept(sampling), [11], "half of all, two thirds of the two");
    let sampling = Sampling {
        top_p: 0.9,
        min_p: 0.5,
        ..all.clone()
    };
    assert_eq!(kept(sampling), [11, 40]);
    // Half the temperature squares the weights: 16, 4, 1 and 1 of 22.
    for (top_p, expected) in [(0.72, &[11][..]), (0.73, &[11, 40]), (0.92, &[11, 40, 3])] {
        let sampling = Sampling {
            temperature: 0.5,
            top_p,
            ..all.clone()
        };
        assert_eq!(kept(sampling), expected, "top_p {top_p}");
    }
}

#[test]
fn what_is_drawn_is_the_token_that_the_draw_falls_on() {
    let all = Sampling {
        temperature: 1.0,
        top_p: 1.0,
        ..Sampling::default()
    };
    let drawn = |sampling: &Sampling, u| {
        Sampler::new(sampling.clone(), 1).sample_with(&mut exact(), &[], u)
    };
    for (u, expected) in [
        (0.0, 3),
        (0.124, 3),
        (0.125, 11),
        (0.624, 11),
        (0.625, 20),
        (0.749, 20),
        (0.75, 40),
        (0.999, 40),
    ] {
        assert_eq!(drawn(&all, u), expected, "{u}");
    }
    let nucleus = Sampling { top_p: 0.75, ..all };
    for (u, expected) in [(0.0, 11), (0.66, 11), (0.67, 40), (0.999, 40)] {
        assert_eq!(drawn(&nucleus, u), expected, "{u} of a nucleus");
    }
}

#[test]
fn suppressed_tokens_are_never_chosen() {
    for temperature in [0.0, 1.0] {
        let sampling = Sampling {
            temperature,
            top_p: 1.0,
            ..Sampling::default()
        };
        let sampler = || Sampler::new(sampling.clone(), 1).with_suppressed(&[40, 11, 99]);
        assert_eq!(sampler().suppressed(), [11, 40, 99]);
        for step in 0..20 {
            let u = f64::from(step) / 20.0;
            let found = sampler().sample_with(&mut exact(), &[], u);
            assert!([3, 20].contains(&found), "{found} at {temperature}");
        }
        // Not even if no logit is a number.
        for nothing in [f32::NAN, f32::NEG_INFINITY] {
            let sampler = Sampler::new(sampling.clone(), 1).with_suppressed(&[0, 1, 3]);
            assert_eq!({ sampler }.sample(&mut [nothing; 5], &[]), 2);
        }
    }
}

/// 1/T overflows an f32 at such a temperature.
#[test]
fn hardly_any_temperature_is_none() {
    for temperature in [0.0, -1.0, 1e-45, 1e-39, 9e-4, f32::NAN] {
        let sampling = Sampling {
            temperature,
            ..Sampling::default()
        };
        let mut sampler = Sampler::new(sampling, 1);
        for _ in 0..20 {
            assert_eq!(sampler.sample(&mut exact(), &[]), 11, "{temperature}");
        }
    }
    let warm = Sampling {
        temperature: 1e-3,
        ..Sampling::default()
    };
    assert!(!warm.is_greedy());
    assert_eq!(Sampler::new(warm, 1).sample(&mut exact(), &[]), 11);
}

#[test]
fn without_filters_draws_follow_the_probabilities() {
    let plain = Sampling {
        temperature: 1.0,
        top_p: 1.0,
        seed: Some(7),
        ..Sampling::default()
    };
    let mut sampler = Sampler::new(plain, 0);
    let mut counts = [0u32; 3];
    for _ in 0..30_000 {
        let mut logits = [0.5f32.ln(), 0.3f32.ln(), 0.2f32.ln()];
        counts[sampler.sample(&mut logits, &[]) as usize] += 1;
    }
    for (count, expected) in counts.into_iter().zip([15_000, 9_000, 6_000]) {
        assert!(count.abs_diff(expected) < 400, "{counts:?}");
    }
}

#[test]
fn zero_temperature_takes_the_first_best() {
    let mut sampler = Sampler::new(greedy(), 1);
    assert_eq!(sampler.sample(&mut [f32::NAN, 1.0, 3.0, 3.0], &[]), 2);
}

#[test]
fn the_penalty_covers_repeat_last_n_tokens() {
    let sampling = Sampling {
        repeat_penalty: 2.0,
        repeat_last_n: 2,
        ..greedy()
    };
    let mut sampler = Sampler::new(sampling, 1);
    assert_eq!(
        sampler.sample(&mut [3.0, 2.0, -1.0], &[0, 2, 2]),
        0,
        "0 is out of reach"
    );
    let mut logits = [3.0, 2.0, -1.0];
    assert_eq!(sampler.sample(&mut logits, &[0, 2]), 1);
    assert_eq!(logits, [1.5, 2.0, -2.0]);
    let mut logits = [3.0, 2.0, -1.0];
    sampler.sample(&mut logits, &[2, 2]);
    assert_eq!(logits, [3.0, 2.0, -2.0], "once, however often it came");
}

#[test]
fn the_same_seed_gives_the_same_tokens() {
    let run = |seed| {
        let mut sampler = Sampler::new(
            Sampling {
                seed,
                ..Sampling::default()
            },
            99,
        );
        (0..20)
            .map(|step| sampler.sample(&mut logits(step), &[]))
            .collect::<Vec<_>>()
    };
    assert_eq!(run(Some(5)), run(Some(5)));
    assert_ne!(run(Some(5)), run(Some(6)));
    assert_eq!(run(None), run(Some(99)));
}

#[test]
fn the_fast_exponential_is_exact_enough() {
    for step in 0..8700 {
        let x = -step as f32 / 100.0;
        let error = (f64::from(exp(x)) / f64::from(x).exp() - 1.0).abs();
        // Rounding x · log₂e costs in proportion to it.
        assert!(error < 2e-7 * f64::from(4.0 - x), "{x}: {error}");
    }
}
