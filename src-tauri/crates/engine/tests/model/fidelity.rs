//! Our logits against the exact logits of the same weights, and against llama.cpp's distance from them.

use crate::reference::{distance, exact_logits, exactly, on_cpu, on_gpu, open, reference};
use ::reference::Distance;
use engine::{CpuLevel, KvType, LoadOptions};

const MODELS: [&str; 3] = ["tiny-q4_k_m", "tiny-q8_0", "tiny-yarn-q8_0"];

fn measure(model: &str, options: &LoadOptions) -> Distance {
    let reference = reference();
    let ours = open(model, options)
        .logits(&reference.tokens, true)
        .expect("the tokens fit");
    distance(&ours, &exact_logits(model, reference.vocab))
}

#[test]
fn in_f32_the_forward_pass_is_exact() {
    for model in MODELS {
        let found = measure(model, &exactly());
        assert!(found.relative_error < 1e-4, "{model}: {found:?}");
    }
}

#[test]
fn no_cpu_level_has_a_larger_error_than_llama_cpp() {
    let reference = reference();
    for level in CpuLevel::available() {
        for model in MODELS {
            let found = measure(
                model,
                &LoadOptions {
                    cpu_level: Some(level),
                    ..on_cpu()
                },
            );
            let theirs = reference.llama_cpp[model];
            assert!(
                found.relative_error <= theirs.relative_error
                    && found.mean_kl <= theirs.mean_kl
                    && found.top1 >= theirs.top1,
                "{model} at {}: {found:?} where llama.cpp has {theirs:?}",
                level.name()
            );
        }
    }
}

#[test]
fn a_quantised_cache_stays_close() {
    for model in MODELS {
        let found = measure(
            model,
            &LoadOptions {
                kv: KvType::Q8_0,
                ..on_cpu()
            },
        );
        assert!(
            found.relative_error < 0.1 && found.mean_kl < 0.06,
            "{model}: {found:?}"
        );
    }
}

#[test]
fn in_f32_the_gpu_is_exact() {
    let Some(options) = on_gpu() else { return };
    let options = LoadOptions {
        exact: true,
        kv: KvType::F32,
        ..options
    };
    for model in MODELS {
        let found = measure(model, &options);
        assert!(found.relative_error < 1e-4, "{model}: {found:?}");
    }
}

#[test]
fn the_gpu_has_no_larger_error_than_llama_cpp() {
    let Some(options) = on_gpu() else { return };
    let reference = reference();
    for model in MODELS {
        let found = measure(model, &options);
        let theirs = reference.llama_cpp[model];
        assert!(
            found.relative_error <= theirs.relative_error
                && found.mean_kl <= theirs.mean_kl
                && found.top1 >= theirs.top1,
            "{model}: {found:?} where llama.cpp has {theirs:?}"
        );
    }
}

#[test]
fn a_quantised_cache_stays_close_on_the_gpu() {
    let Some(options) = on_gpu() else { return };
    let options = LoadOptions {
        kv: KvType::Q8_0,
        ..options
    };
    for model in MODELS {
        let found = measure(model, &options);
        assert!(
            found.relative_error < 0.1 && found.mean_kl < 0.06,
            "{model}: {found:?}"
        );
    }
}
