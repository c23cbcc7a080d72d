// The statistics of each workgroup's part of the logits: see `merged_stats`.
#include invocation
@group(0) @binding(#) var<storage, read> logits: array<f32>;
@group(0) @binding(#) var<storage, read> sampling: Sampling;
@group(0) @binding(#) var<storage, read> suppressed: array<u32>;
@group(0) @binding(#) var<storage, read_write> vocab_stats: array<vec4<f32>>;

#include sample_params
var<workgroup> subgroup_stats: array<vec4<f32>, 32>;

@compute @workgroup_size(THREADS)
fn main(id: Lane) {
  let first = id.workgroup.x * SLICE;
  let last = min(first + SLICE, VOCAB);
  var max_logit = SUPPRESSED_LOGIT;
  var at = 0u;
  var has_nan = 0.0;
  for (var i = first + thread(id); i < last; i += THREADS) {
    // The comparison is false for NaN.
    has_nan = max(has_nan, select(1.0, 0.0, abs(logits[i]) < 1e30));
    let logit = candidate(i);
    if (logit > max_logit) {
      max_logit = logit;
      at = i;
    }
  }
  let top = subgroupMax(max_logit);
  at = subgroupMin(select(VOCAB, at, max_logit == top));
  var sum_exp = 0.0;
  for (var i = first + thread(id); i < last; i += THREADS) {
    sum_exp += exp((candidate(i) - top) * sampling.inverse_temperature);
  }
  sum_exp = subgroupAdd(sum_exp);
  has_nan = subgroupMax(has_nan);
  if (id.lane == 0u) {
    subgroup_stats[id.subgroup] = vec4<f32>(top, sum_exp, bitcast<f32>(at), has_nan);
  }
  workgroupBarrier();
  if (thread(id) == 0u) {
    var all = subgroup_stats[0];
    for (var i = 1u; i < id.subgroups; i++) {
      all = merged_stats(all, subgroup_stats[i]);
    }
    vocab_stats[id.workgroup.x] = all;
  }
}
