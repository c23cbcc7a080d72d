// The contribution of each chunk of the KV cache to a head: its unnormalised sum of values, and the maximum and sum of its
// softmax.
@group(0) @binding(#) var<storage, read> sums: array<vec4<f32>>;
@group(0) @binding(#) var<storage, read> stats: array<vec2<f32>>;

// Eight attended values, of group `at` of a token's heads and its lane `quarter`.
fn merged(token: u32, at: u32, quarter: u32, chunks: u32) -> array<vec4<f32>, 2> {
  let head = token * HEADS + at * 32u / HEAD_DIM;
  let within = (at * 32u % HEAD_DIM) / 4u + quarter * 2u;
  var row_max = MIN_SCORE;
  for (var c = 0u; c < chunks; c++) {
    row_max = max(row_max, stats[head * chunks + c].x);
  }
  var row_sum = 0.0;
  var a = vec4<f32>(0.0);
  var b = vec4<f32>(0.0);
  for (var c = 0u; c < chunks; c++) {
    let chunk = head * chunks + c;
    let weight = exp(stats[chunk].x - row_max);
    row_sum += weight * stats[chunk].y;
    a += weight * sums[chunk * HEAD_DIM / 4u + within];
    b += weight * sums[chunk * HEAD_DIM / 4u + within + 1u];
  }
  return array<vec4<f32>, 2>(a / row_sum, b / row_sum);
}
const MIN_SCORE = -1e30;
