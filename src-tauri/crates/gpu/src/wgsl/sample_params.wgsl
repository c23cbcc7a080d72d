// The parameters of the sampler.
struct Sampling {
  // 1 / temperature; 0 is greedy.
  inverse_temperature: f32,
  top_p: f32,
  min_p: f32,
  top_k: u32,
}
const SUPPRESSED_LOGIT = -1e30;

// A token's logit; SUPPRESSED_LOGIT if it is suppressed.
fn candidate(token: u32) -> f32 {
  let bit = (suppressed[token / 32u] >> (token % 32u)) & 1u;
  return select(logits[token], SUPPRESSED_LOGIT, bit == 1u);
}

// Merges the statistics of two parts of the logits: (maximum, sum of exponentials relative to it, its token, 1 if any is
// NaN or infinite).
fn merged_stats(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
  let max_logit = max(a.x, b.x);
  let sum_exp = a.y * exp((a.x - max_logit) * sampling.inverse_temperature) + b.y * exp((b.x - max_logit) * sampling.inverse_temperature);
  let first = a.x > b.x || (a.x == b.x && bitcast<u32>(a.z) <= bitcast<u32>(b.z));
  return vec4<f32>(max_logit, sum_exp, select(b.z, a.z, first), max(a.w, b.w));
}
