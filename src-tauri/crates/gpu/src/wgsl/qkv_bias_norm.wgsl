// Rows `[q, k, v]`: biases are added, then each head of q and k is normed, one workgroup a token. Four lanes have a head.
#include invocation
@group(0) @binding(#) var<storage, read_write> qkv: array<vec4<f32>>;
#if BIAS
@group(0) @binding(#) var<storage, read> q_bias: array<vec4<f32>>;
@group(0) @binding(#) var<storage, read> k_bias: array<vec4<f32>>;
@group(0) @binding(#) var<storage, read> v_bias: array<vec4<f32>>;
#endif
#if HEAD_NORMS
@group(0) @binding(#) var<storage, read> q_norm: array<vec4<f32>>;
@group(0) @binding(#) var<storage, read> k_norm: array<vec4<f32>>;
#endif

const VECTORS = HEAD_DIM / 4u;

#if BIAS
fn bias(head: u32, at: u32) -> vec4<f32> {
  if (head < HEADS) {
    return q_bias[head * VECTORS + at];
  }
  if (head < HEADS + KV_HEADS) {
    return k_bias[(head - HEADS) * VECTORS + at];
  }
  return v_bias[(head - HEADS - KV_HEADS) * VECTORS + at];
}
#endif

@compute @workgroup_size(THREADS)
fn main(id: Lane) {
  let row = id.workgroup.x * (HEADS + 2u * KV_HEADS);
  for (var i = thread(id); i < (HEADS + 2u * KV_HEADS) * 4u; i += THREADS) {
    let head = i / 4u;
    let first = (row + head) * VECTORS;
    var squares = 0.0;
    for (var at = i % 4u; at < VECTORS; at += 4u) {
#if BIAS
      let v = qkv[first + at] + bias(head, at);
      qkv[first + at] = v;
#else
      let v = qkv[first + at];
#endif
      squares += dot(v, v);
    }
#if HEAD_NORMS
    squares += subgroupShuffleXor(squares, 1u);
    squares += subgroupShuffleXor(squares, 2u);
    let inverse = inverseSqrt(squares / f32(HEAD_DIM) + EPS);
    for (var at = i % 4u; at < VECTORS; at += 4u) {
      if (head < HEADS) {
        qkv[first + at] *= inverse * q_norm[at];
      } else if (head < HEADS + KV_HEADS) {
        qkv[first + at] *= inverse * k_norm[at];
      }
    }
#endif
  }
}
