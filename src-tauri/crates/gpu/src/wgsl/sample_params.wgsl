// How the next token is chosen. A sharpness of 0 always takes the likeliest.
struct Sampling {
  // One over the temperature.
  sharpness: f32,
  top_p: f32,
  min_p: f32,
  top_k: u32,
}
const LEAST = -1e30;

// A token's logit; a suppressed token's is too low to be chosen.
fn candidate(token: u32) -> f32 {
  let bit = (suppressed[token / 32u] >> (token % 32u)) & 1u;
  return select(logits[token], LEAST, bit == 1u);
}

// Two parts of the logits as one: (peak, mass relative to it, the peak's token, whether one is no number).
fn joined(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
  let peak = max(a.x, b.x);
  let mass = a.y * exp((a.x - peak) * sampling.sharpness) + b.y * exp((b.x - peak) * sampling.sharpness);
  let first = a.x > b.x || (a.x == b.x && bitcast<u32>(a.z) <= bitcast<u32>(b.z));
  return vec4<f32>(peak, mass, select(b.z, a.z, first), max(a.w, b.w));
}
