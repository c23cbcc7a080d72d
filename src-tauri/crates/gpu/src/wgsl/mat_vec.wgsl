// Rows of quantised weights times COLUMNS tokens. A subgroup takes two rows at a time, its lanes every
// width-th group of 32; prologue (norm, merge) and epilogue (RoPE, KV cache, SwiGLU, sum) are fused in.
#include invocation
#include activations X=x ACCESS=read
#include dot_group
#weights
#if NORM
@group(0) @binding(#) var<storage, read> source: array<vec4<f32>>;
@group(0) @binding(#) var<storage, read> norm: array<vec4<f32>>;
#include inverse_rms
#include store_activations X=x
#elif MERGE
#include attention_chunks
#include store_activations X=x
#endif
#include $EPILOGUE

var<workgroup> results: array<vec2<f32>, PAIRS * COLUMNS>;

// The results of a pair of rows: `at` is [token][pair].
fn result(at: u32) -> vec2<f32> {
  return results[at];
}

@compute @workgroup_size(THREADS)
fn main(id: Lane) {
  let t = thread(id);
#if NORM
  let inverse = inverse_rms(id, step.column * GROUPS * 8u);
  for (var i = t; i < GROUPS * 4u; i += THREADS) {
    let start = step.column * GROUPS * 8u + 2u * i;
    store_x(i / 4u, i % 4u, inverse * source[start] * norm[2u * i], inverse * source[start + 1u] * norm[2u * i + 1u]);
  }
  workgroupBarrier();
#elif MERGE
  for (var i = t; i < GROUPS * 4u; i += THREADS) {
    let v = merged(0u, i / 4u, i % 4u, step.chunks);
    store_x(i / 4u, i % 4u, v[0], v[1]);
  }
  workgroupBarrier();
#endif
  for (var p = id.subgroup; p < PAIRS; p += id.subgroups) {
    let pair = id.workgroup.x * PAIRS + p;
    var sum: array<vec2<f32>, COLUMNS>;
    for (var c = 0u; c < COLUMNS; c++) {
      sum[c] = vec2<f32>(0.0);
    }
    if (pair < ALL_PAIRS) {
      for (var g = id.lane; g < GROUPS; g += id.width) {
        let a = first_of(pair, g);
        let b = second_of(pair, g);
#if x_STAGED
        let at = g;
#else
        let at = step.column * GROUPS + g;
#endif
        for (var c = 0u; c < COLUMNS; c++) {
          sum[c] += vec2<f32>(dot_group(a, at + c * GROUPS), dot_group(b, at + c * GROUPS));
        }
      }
    }
    for (var c = 0u; c < COLUMNS; c++) {
      let whole = subgroupAdd(sum[c]);
      if (id.lane == 0u) {
        results[c * PAIRS + p] = whole;
      }
    }
  }
  workgroupBarrier();
  finish(id, t, 0u);
}
