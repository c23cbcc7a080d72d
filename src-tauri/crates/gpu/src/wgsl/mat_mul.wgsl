// Weights times many tokens: a workgroup computes 32 pairs of rows for 64 tokens, 32 columns at a time, from
// weights unpacked into shared memory.
#include invocation
#include activations X=x ACCESS=read
#weights
#include $EPILOGUE

const TOKENS = 64u;
// Tokens of one call of the epilogue.
const COLUMNS = 16u;
var<workgroup> results: array<vec2<f32>, PAIRS * COLUMNS>;

// The results of a pair of rows: `at` is [token][pair].
fn result(at: u32) -> vec2<f32> {
  return results[at];
}
#if x_DOT4
// Halves of 16 bytes, [half][row] and [half][token].
var<workgroup> rows_bytes: array<vec4<u32>, 128>;
var<workgroup> rows_scales: array<vec4<f32>, 64>;
var<workgroup> tokens_bytes: array<vec4<u32>, 128>;
var<workgroup> tokens_scales: array<vec4<f32>, 64>;
#else
// Four columns each, [column / 4][row]; half of a group at a time, so that both fit.
var<workgroup> rows_floats: array<vec4<f32>, 256>;
var<workgroup> tokens_floats: array<vec4<f32>, 256>;
#endif

fn row_group(first: u32, row: u32, g: u32) -> Group {
  let pair = min(first + row % 32u, ALL_PAIRS - 1u);
  if (row < 32u) {
    return decode_first(load_first(pair, g), pair, g);
  }
  return decode_second(load_second(pair, g), pair, g);
}

@compute @workgroup_size(THREADS)
fn main(id: Lane) {
  let t = thread(id);
  let first = id.workgroup.x * PAIRS;
  let token = id.workgroup.y * TOKENS;
  // Pairs own and own + 16, tokens beside, beside + 8, … of the tile.
  let own = t % 16u;
  let beside = t / 16u;
  var sums: array<vec4<f32>, 8>;
  for (var j = 0u; j < 8u; j++) {
    sums[j] = vec4<f32>(0.0);
  }
  for (var g = 0u; g < GROUPS; g++) {
#if x_DOT4
    workgroupBarrier();
    if (t < 64u) {
      let w = row_group(first, t, g);
      rows_bytes[t] = w.low;
      rows_bytes[64u + t] = w.high;
      rows_scales[t] = vec4<f32>(w.scale, w.minimum, 0.0);
    } else {
      let at = (token + t - 64u) * GROUPS + g;
      tokens_bytes[t - 64u] = x_bytes[at * 2u];
      tokens_bytes[t] = x_bytes[at * 2u + 1u];
      tokens_scales[t - 64u] = x_scales[at];
    }
    workgroupBarrier();
    for (var j = 0u; j < 8u; j++) {
      let c = beside + 8u * j;
      let a = tokens_bytes[c];
      let b = tokens_bytes[64u + c];
      let s = tokens_scales[c];
      sums[j] += vec4<f32>(
        scaled(own, a, b, s), scaled(own + 16u, a, b, s),
        scaled(own + 32u, a, b, s), scaled(own + 48u, a, b, s),
      );
    }
#else
    for (var half = 0u; half < 2u; half++) {
      workgroupBarrier();
      if (t < 64u) {
        var v = weights_of(row_group(first, t, g));
        for (var i = 0u; i < 4u; i++) {
          rows_floats[i * 64u + t] = v[half * 4u + i];
        }
      } else {
        let at = ((token + t - 64u) * GROUPS + g) * 8u + half * 4u;
        for (var i = 0u; i < 4u; i++) {
          tokens_floats[i * 64u + t - 64u] = x_floats[at + i];
        }
      }
      workgroupBarrier();
      for (var i = 0u; i < 4u; i++) {
        let k = i * 64u + own;
        for (var j = 0u; j < 8u; j++) {
          let v = tokens_floats[i * 64u + beside + 8u * j];
          sums[j] += vec4<f32>(
            dot(rows_floats[k], v), dot(rows_floats[k + 16u], v),
            dot(rows_floats[k + 32u], v), dot(rows_floats[k + 48u], v),
          );
        }
      }
    }
#endif
  }
  for (var part = 0u; part < TOKENS / COLUMNS; part++) {
    workgroupBarrier();
    for (var j = 0u; j < 2u; j++) {
      let sum = sums[part * 2u + j];
      let c = beside + 8u * j;
      results[c * PAIRS + own] = sum.xz;
      results[c * PAIRS + own + 16u] = sum.yw;
    }
    workgroupBarrier();
    finish(id, t, token + part * COLUMNS);
  }
}

#if x_DOT4
// A row of the tile times a token: bytes a and b, scales s.
fn scaled(row: u32, a: vec4<u32>, b: vec4<u32>, s: vec4<f32>) -> f32 {
  let l = rows_bytes[row];
  let h = rows_bytes[64u + row];
  let w = rows_scales[row];
  let low = dot4I8Packed(l.x, a.x) + dot4I8Packed(l.y, a.y) + dot4I8Packed(l.z, a.z) + dot4I8Packed(l.w, a.w);
  let high = dot4I8Packed(h.x, b.x) + dot4I8Packed(h.y, b.y) + dot4I8Packed(h.z, b.z) + dot4I8Packed(h.w, b.w);
  return dot(w.xy * s.xy, vec2<f32>(f32(low), f32(high))) - w.z * s.z;
}
#endif
