// The contribution of each chunk of the KV cache to a head: its unnormalised sum of values, and the maximum and sum of its
// softmax.
@group(0) @binding(#) var<storage, read> sums: array<vec4<f32>>;
@group(0) @binding(#) var<storage, read> stats: array<vec2<f32>>;

// Eight attended values, of group `at` of a token's heads and its lane `quarter`.
fn merged(token: u32, at: u32, quarter: u32, chunks: u32) -> array<vec4<f32>, 2> {
  let head = token * HEADS + at * 32u / HEAD_DIM;
  let within = (at * 32u % HEAD_DIM) / 4u + quarter * 2u;
  var row_max = MIN_SCORE;
  var row_sum = 0.0;
  var a = vec4<f32>(0.0);
  var b = vec4<f32>(0.0);
  // Four chunks at a time, so that their loads overlap.
  for (var c = 0u; c < chunks; c += 4u) {
    let last = chunks - 1u;
    let at = vec4<u32>(head * chunks) + min(vec4<u32>(c, c + 1u, c + 2u, c + 3u), vec4<u32>(last));
    let from_chunk = at * (HEAD_DIM / 4u) + within;
    let s0 = stats[at.x];
    let s1 = stats[at.y];
    let s2 = stats[at.z];
    let s3 = stats[at.w];
    let a0 = sums[from_chunk.x];
    let a1 = sums[from_chunk.y];
    let a2 = sums[from_chunk.z];
    let a3 = sums[from_chunk.w];
    let b0 = sums[from_chunk.x + 1u];
    let b1 = sums[from_chunk.y + 1u];
    let b2 = sums[from_chunk.z + 1u];
    let b3 = sums[from_chunk.w + 1u];
    let top = max(max(s0.x, s1.x), max(s2.x, s3.x));
    let next_max = max(row_max, top);
    let exists = vec4<f32>(vec4<u32>(c, c + 1u, c + 2u, c + 3u) <= vec4<u32>(last));
    let weight = exists * exp(vec4<f32>(s0.x, s1.x, s2.x, s3.x) - next_max);
    let rescale = exp(row_max - next_max);
    row_sum = rescale * row_sum + dot(weight, vec4<f32>(s0.y, s1.y, s2.y, s3.y));
    a = rescale * a + weight.x * a0 + weight.y * a1 + weight.z * a2 + weight.w * a3;
    b = rescale * b + weight.x * b0 + weight.y * b1 + weight.z * b2 + weight.w * b3;
    row_max = next_max;
  }
  return array<vec4<f32>, 2>(a / row_sum, b / row_sum);
}
const MIN_SCORE = -1e30;
