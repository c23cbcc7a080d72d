// Rows of quantised weights times COLUMNS tokens. A subgroup takes two rows at a time, its lanes every width-th group of
// 32; where there are more subgroups than pairs of rows, several share a pair. Prologue (norm, merge) and epilogue (RoPE,
// KV cache, SwiGLU, sum) are fused in.
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

// [split][token][pair]
var<workgroup> results: array<vec2<f32>, PARTIALS * COLUMNS>;
// Subgroups that share a pair.
var<private> splits: u32;

// The results of a pair of rows: `at` is [token][pair].
fn result(at: u32) -> vec2<f32> {
  var sum = results[at];
  for (var s = 1u; s < splits; s++) {
    sum += results[s * PAIRS * COLUMNS + at];
  }
  return sum;
}

@compute @workgroup_size(THREADS)
fn main(id: Lane) {
  let t = thread(id);
  splits = max(id.subgroups / PAIRS, 1u);
  let part = select(0u, id.subgroup / PAIRS, splits > 1u);
  let begin = part * id.width + id.lane;
  let stride = splits * id.width;
  let rounds = (GROUPS + stride - 1u) / stride;
  var p = select(id.subgroup, id.subgroup % PAIRS, splits > 1u);
  // The first two groups are loaded before the prologue, the next two before the present ones are multiplied.
  var pair = min(id.workgroup.x * PAIRS + p, ALL_PAIRS - 1u);
  var g = begin;
  var a = load_first(pair, min(g, GROUPS - 1u));
  var b = load_second(pair, min(g, GROUPS - 1u));
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
#each C=COLUMNS
  var sum$C = vec2<f32>(0.0);
#end
  var round = 0u;
  loop {
    let own = p;
    let own_pair = pair;
    let own_g = min(g, GROUPS - 1u);
    let counts = select(0.0, 1.0, g < GROUPS);
    let own_a = a;
    let own_b = b;
    round += 1u;
    let ends = round == rounds;
    let last = ends && (splits > 1u || p + id.subgroups >= PAIRS);
    if (!last) {
      g = select(g + stride, begin, ends);
      p = select(p, p + id.subgroups, ends);
      pair = min(id.workgroup.x * PAIRS + p, ALL_PAIRS - 1u);
      a = load_first(pair, min(g, GROUPS - 1u));
      b = load_second(pair, min(g, GROUPS - 1u));
    }
    let first = decode_first(own_a, own_pair, own_g);
    let second = decode_second(own_b, own_pair, own_g);
#if x_STAGED
    let at = own_g;
#else
    let at = step.column * GROUPS + own_g;
#endif
#each C=COLUMNS
    sum$C += counts * vec2<f32>(dot_group(first, at + $Cu * GROUPS), dot_group(second, at + $Cu * GROUPS));
#end
    if (ends) {
      round = 0u;
#each C=COLUMNS
      let whole$C = subgroupAdd(sum$C);
      sum$C = vec2<f32>(0.0);
      if (id.lane == 0u) {
        results[(part * COLUMNS + $Cu) * PAIRS + own] = whole$C;
      }
#end
      if (last) {
        break;
      }
    }
  }
  workgroupBarrier();
  finish(id, t, 0u);
}
