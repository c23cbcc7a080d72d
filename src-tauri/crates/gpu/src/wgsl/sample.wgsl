// Chooses a token from the logits as the engine's sampler does: top-k, then top-p, then min-p, then one that the
// noise in 0..1 picks. A suppressed token never is. Writes it for the next pass and for the host, and embeds it. One workgroup.
#include invocation
#if EMBED
#weights
#endif
@group(0) @binding(#) var<storage, read> logits: array<f32>;
@group(0) @binding(#) var<storage, read> sampling: Sampling;
@group(0) @binding(#) var<storage, read> suppressed: array<u32>;
@group(0) @binding(#) var<storage, read> parts: array<vec4<f32>>;
@group(0) @binding(#) var<storage, read_write> chosen: array<u32>;
#if EMBED
@group(0) @binding(#) var<storage, read_write> target_row: array<vec4<f32>>;
#endif

#include sample_params
const ROOM = 640u;
// Nothing further below the best counts, all 128,256 of them together.
const NEGLIGIBLE = 28.0;
const COVERED = 0u;
const NOT_COVERED = 1u;
const NO_NUMBER = 2u;
var<workgroup> count: atomic<u32>;
var<workgroup> tokens: array<u32, ROOM>;
var<workgroup> weights: array<f32, ROOM>;
var<workgroup> sorted_tokens: array<u32, ROOM>;
var<workgroup> sorted_weights: array<f32, ROOM>;
var<workgroup> outcome: vec2<u32>;

// Gathers the tokens down to `depth` below the peak; how many there are, of which ROOM are kept.
fn gather(t: u32, peak: f32, depth: f32) -> u32 {
  if (t == 0u) {
    atomicStore(&count, 0u);
  }
  workgroupBarrier();
  for (var i = t; i < VOCAB; i += THREADS) {
    let below = (candidate(i) - peak) * sampling.sharpness;
    if (below >= -depth) {
      let at = atomicAdd(&count, 1u);
      if (at < ROOM) {
        tokens[at] = i;
        weights[at] = exp(below);
      }
    }
  }
  workgroupBarrier();
  return atomicLoad(&count);
}

// Whether only so many of the likeliest are kept, and only those down to a total probability.
fn limited() -> bool {
  return sampling.top_k > 0u && sampling.top_k < VOCAB;
}

fn nucleus() -> bool {
  return sampling.top_p < 1.0;
}

// Puts what was gathered into an order that does not depend on chance: the likeliest first where a filter asks for
// it, else and among equals by number.
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

// The token, and whether what was gathered covers what the filters keep.
fn drawn(number: u32, mass: f32, exhausted: bool) -> vec2<u32> {
  var kept = number;
  var whole = mass;
  if (limited()) {
    if (number < sampling.top_k && !exhausted) {
      return vec2<u32>(0u, NOT_COVERED);
    }
    kept = min(number, sampling.top_k);
    whole = 0.0;
    for (var i = 0u; i < kept; i++) {
      whole += sorted_weights[i];
    }
  } else if (!nucleus() && !exhausted) {
    return vec2<u32>(0u, NOT_COVERED);
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
    return vec2<u32>(0u, NOT_COVERED);
  }
  var left = step.noise * total;
  for (var i = 0u; i < end; i++) {
    left -= sorted_weights[i];
    if (left < 0.0) {
      return vec2<u32>(sorted_tokens[i], COVERED);
    }
  }
  return vec2<u32>(sorted_tokens[max(end, 1u) - 1u], COVERED);
}

@compute @workgroup_size(THREADS)
fn main(id: Lane) {
  let t = thread(id);
  var all = parts[0];
  for (var i = 1u; i < PARTS; i++) {
    all = joined(all, parts[i]);
  }
  if (t == 0u) {
    outcome = vec2<u32>(bitcast<u32>(all.z), COVERED);
  }
  if (sampling.sharpness > 0.0) {
    let floor = select(NEGLIGIBLE, -log(sampling.min_p), sampling.min_p > 0.0);
    var depth = min(floor, 12.0);
    var number = gather(t, all.x, depth);
    // A flat distribution: fewer of it, as long as they do not suffice the host has to choose.
    for (var again = 0u; again < 4u && number > ROOM; again++) {
      depth *= 0.5;
      number = gather(t, all.x, depth);
    }
    number = min(number, ROOM);
    sort(t, number);
    if (t == 0u) {
      outcome = drawn(number, all.y, depth >= floor);
    }
  }
  workgroupBarrier();
  let token = outcome.x;
  if (t == 0u) {
    chosen[0] = token;
    chosen[1] = select(outcome.y, NO_NUMBER, all.w > 0.0);
  }
#if EMBED
  for (var g = t; g < GROUPS; g += THREADS) {
    var w = weights_of(group0(token, g));
    for (var i = 0u; i < 8u; i++) {
      target_row[g * 8u + i] = w[i];
    }
  }
#endif
}
