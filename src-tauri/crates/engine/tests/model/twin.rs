//! candle-transformers' SmolLM3 as an independent twin: other code, other people, the same model.

use crate::reference::{distance, exactly, fixture, open, reference};
use candle_core::{Device, Tensor};
use candle_transformers::models::smol::quantized_smollm3::QuantizedModelForCausalLM;

#[test]
fn the_twin_agrees() {
    let tokens = reference().tokens;
    // YaRN is not among what the twin knows. Its head and activations are quantised to 8 bits.
    for model in ["tiny-q4_k_m", "tiny-q8_0"] {
        let path = fixture(&format!("{model}.gguf"));
        let mut twin =
            QuantizedModelForCausalLM::from_gguf(path, &Device::Cpu, true).expect("it loads");
        let ours = open(model, &exactly())
            .logits(&tokens, true)
            .expect("the tokens fit");
        let lengths: Vec<usize> = (20..=tokens.len()).step_by(20).collect();
        let theirs: Vec<Vec<f32>> = lengths
            .iter()
            .map(|&length| last_logits(&mut twin, &tokens[..length]))
            .collect();
        let ours: Vec<Vec<f32>> = lengths
            .iter()
            .map(|&length| ours[length - 1].clone())
            .collect();
        let found = distance(&theirs, &ours);
        assert!(
            found.relative_error < 0.1 && found.mean_kl < 0.06,
            "{model}: {found:?}"
        );
    }
}

fn last_logits(twin: &mut QuantizedModelForCausalLM, tokens: &[u32]) -> Vec<f32> {
    twin.clear_kv_cache();
    let input = Tensor::new(tokens, &Device::Cpu)
        .and_then(|ids| ids.unsqueeze(0))
        .expect("ids");
    let logits = twin
        .forward(&input, 0)
        .and_then(|logits| logits.flatten_all()?.to_vec1());
    logits.expect("it runs")
}
