// 1 / √(mean x² + ε) of a row of `source` from vector `start` on, by the whole workgroup.
var<workgroup> squares: array<f32, THREADS / 4u>;

fn inverse_rms(id: Lane, start: u32) -> f32 {
  var sum = 0.0;
  for (var i = thread(id); i < GROUPS * 8u; i += THREADS) {
    let v = source[start + i];
    sum += dot(v, v);
  }
  sum = subgroupAdd(sum);
  if (id.lane == 0u) {
    squares[id.subgroup] = sum;
  }
  workgroupBarrier();
  sum = 0.0;
  for (var i = 0u; i < id.subgroups; i++) {
    sum += squares[i];
  }
  return inverseSqrt(sum / f32(GROUPS * 32u) + EPS);
}
