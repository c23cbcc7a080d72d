// Samples a token from the logits as the engine's sampler does: top-k, then top-p, then min-p, then the uniform draw.
// Suppressed tokens are never sampled. Writes the token for the next pass and the host, and embeds it. One workgroup.
#include invocation
#if EMBED
#weights
#endif
@group(0) @binding(#) var<storage, read> logits: array<f32>;
@group(0) @binding(#) var<storage, read> sampling: Sampling;
@group(0) @binding(#) var<storage, read> suppressed: array<u32>;
@group(0) @binding(#) var<storage, read> vocab_stats: array<vec4<f32>>;
@group(0) @binding(#) var<storage, read_write> sampled: array<u32>;
#if EMBED
@group(0) @binding(#) var<storage, read_write> target_row: array<vec4<f32>>;
#endif

#include sample_params
const MAX_CANDIDATES = 640u;
// Tokens this far below the maximum are negligible, even 128,256 of them together.
const MAX_DEPTH = 28.0;
const SAMPLED = 0u;
const NEEDS_HOST = 1u;
const NAN_LOGITS = 2u;
var<workgroup> count: atomic<u32>;
var<workgroup> tokens: array<u32, MAX_CANDIDATES>;
var<workgroup> weights: array<f32, MAX_CANDIDATES>;
var<workgroup> sorted_tokens: array<u32, MAX_CANDIDATES>;
var<workgroup> sorted_weights: array<f32, MAX_CANDIDATES>;
var<workgroup> outcome: vec2<u32>;

// Gathers the tokens down to `depth` below the maximum. Returns their number; at most MAX_CANDIDATES are stored.
fn gather(t: u32, max_logit: f32, depth: f32) -> u32 {
  if (t == 0u) {
    atomicStore(&count, 0u);
  }
  workgroupBarrier();
  for (var i = t; i < VOCAB; i += THREADS) {
    let below = (candidate(i) - max_logit) * sampling.inverse_temperature;
    if (below >= -depth) {
      let at = atomicAdd(&count, 1u);
      if (at < MAX_CANDIDATES) {
        tokens[at] = i;
        weights[at] = exp(below);
      }
    }
  }
  workgroupBarrier();
  return atomicLoad(&count);
}

// True if top-k filters; `nucleus` is the same for top-p.
fn limited() -> bool {
  return sampling.top_k > 0u && sampling.top_k < VOCAB;
}

fn nucleus() -> bool {
  return sampling.top_p < 1.0;
}

// Sorts the candidates, whose order after the gathering is not deterministic: by probability where a filter needs it,
// otherwise, and among equals, by id.
fn sort(t: u32, number: u32) {
  let by_weight = limited() || nucleus();
  for (var i = t; i < number; i += THREADS) {
    var rank = 0u;
    for (var j = 0u; j < number; j++) {
      let even = !by_weight || weights[j] == weights[i];
      let before = (by_weight && weights[j] > weights[i]) || (even && tokens[j] < tokens[i]);
      rank += select(0u, 1u, before);
    }
    sorted_tokens[rank] = tokens[i];
    sorted_weights[rank] = weights[i];
  }
  workgroupBarrier();
}

// Draws a token. NEEDS_HOST if the candidates do not cover what the filters keep.
fn draw(number: u32, sum_exp: f32, exhausted: bool) -> vec2<u32> {
  var kept = number;
  var whole = sum_exp;
  if (limited()) {
    if (number < sampling.top_k && !exhausted) {
      return vec2<u32>(0u, NEEDS_HOST);
    }
    kept = min(number, sampling.top_k);
    whole = 0.0;
    for (var i = 0u; i < kept; i++) {
      whole += sorted_weights[i];
    }
  } else if (!nucleus() && !exhausted) {
    return vec2<u32>(0u, NEEDS_HOST);
  }
  var total = 0.0;
  var end = 0u;
  var reached = false;
  for (var i = 0u; i < kept && !reached; i++) {
    total += sorted_weights[i];
    end = i + 1u;
    reached = nucleus() && total >= sampling.top_p * whole;
  }
  if (nucleus() && !reached && !limited() && !exhausted) {
    return vec2<u32>(0u, NEEDS_HOST);
  }
  var left = step.u * total;
  for (var i = 0u; i < end; i++) {
    left -= sorted_weights[i];
    if (left < 0.0) {
      return vec2<u32>(sorted_tokens[i], SAMPLED);
    }
  }
  return vec2<u32>(sorted_tokens[max(end, 1u) - 1u], SAMPLED);
}

@compute @workgroup_size(THREADS)
fn main(id: Lane) {
  let t = thread(id);
  var all = vocab_stats[0];
  for (var i = 1u; i < PARTS; i++) {
    all = merged_stats(all, vocab_stats[i]);
  }
  if (t == 0u) {
    outcome = vec2<u32>(bitcast<u32>(all.z), SAMPLED);
  }
  if (sampling.inverse_temperature > 0.0) {
    let floor = select(MAX_DEPTH, -log(sampling.min_p), sampling.min_p > 0.0);
    var depth = min(floor, 12.0);
    var number = gather(t, all.x, depth);
    // A flat distribution: gather fewer; if they do not cover what the filters keep, the host samples.
    for (var again = 0u; again < 4u && number > MAX_CANDIDATES; again++) {
      depth *= 0.5;
      number = gather(t, all.x, depth);
    }
    number = min(number, MAX_CANDIDATES);
    sort(t, number);
    if (t == 0u) {
      outcome = draw(number, all.y, depth >= floor);
    }
  }
  workgroupBarrier();
  let token = outcome.x;
  if (t == 0u) {
    sampled[0] = token;
    sampled[1] = select(outcome.y, NAN_LOGITS, all.w > 0.0);
  }
#if EMBED
  for (var g = t; g < GROUPS; g += THREADS) {
    var w = weights_of(decode0(load0(token, g), token, g));
    for (var i = 0u; i < 8u; i++) {
      target_row[g * 8u + i] = w[i];
    }
  }
#endif
}
