// What each chunk of the cache contributes to a head: its unnormalised sum of values, peak and mass.
@group(0) @binding(#) var<storage, read> sums: array<vec4<f32>>;
@group(0) @binding(#) var<storage, read> peaks: array<vec2<f32>>;

// Eight attended values, of group `at` of a token's heads and its lane `quarter`.
fn merged(token: u32, at: u32, quarter: u32, chunks: u32) -> array<vec4<f32>, 2> {
  let head = token * HEADS + at * 32u / HEAD_DIM;
  let within = (at * 32u % HEAD_DIM) / 4u + quarter * 2u;
  var peak = LEAST;
  for (var c = 0u; c < chunks; c++) {
    peak = max(peak, peaks[head * chunks + c].x);
  }
  var mass = 0.0;
  var a = vec4<f32>(0.0);
  var b = vec4<f32>(0.0);
  for (var c = 0u; c < chunks; c++) {
    let chunk = head * chunks + c;
    let weight = exp(peaks[chunk].x - peak);
    mass += weight * peaks[chunk].y;
    a += weight * sums[chunk * HEAD_DIM / 4u + within];
    b += weight * sums[chunk * HEAD_DIM / 4u + within + 1u];
  }
  return array<vec4<f32>, 2>(a / mass, b / mass);
}
const LEAST = -1e30;
