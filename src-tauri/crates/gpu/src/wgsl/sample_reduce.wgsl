// Each workgroup's part of the logits: the likeliest token, its logit, the mass of all relative to it, and
// whether any is no number.
#include invocation
@group(0) @binding(#) var<storage, read> logits: array<f32>;
@group(0) @binding(#) var<storage, read> sampling: Sampling;
@group(0) @binding(#) var<storage, read> suppressed: array<u32>;
@group(0) @binding(#) var<storage, read_write> parts: array<vec4<f32>>;

#include sample_params
var<workgroup> found: array<vec4<f32>, 32>;

@compute @workgroup_size(THREADS)
fn main(id: Lane) {
  let first = id.workgroup.x * SLICE;
  let last = min(first + SLICE, VOCAB);
  var peak = LEAST;
  var at = 0u;
  var wrong = 0.0;
  for (var i = first + thread(id); i < last; i += THREADS) {
    // The comparison is false for NaN.
    wrong = max(wrong, select(1.0, 0.0, abs(logits[i]) < 1e30));
    let logit = candidate(i);
    if (logit > peak) {
      peak = logit;
      at = i;
    }
  }
  let top = subgroupMax(peak);
  at = subgroupMin(select(VOCAB, at, peak == top));
  var mass = 0.0;
  for (var i = first + thread(id); i < last; i += THREADS) {
    mass += exp((candidate(i) - top) * sampling.sharpness);
  }
  mass = subgroupAdd(mass);
  wrong = subgroupMax(wrong);
  if (id.lane == 0u) {
    found[id.subgroup] = vec4<f32>(top, mass, bitcast<f32>(at), wrong);
  }
  workgroupBarrier();
  if (thread(id) == 0u) {
    var all = found[0];
    for (var i = 1u; i < id.subgroups; i++) {
      all = joined(all, found[i]);
    }
    parts[id.workgroup.x] = all;
  }
}
