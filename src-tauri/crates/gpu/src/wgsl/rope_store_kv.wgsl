// RoPE of queries and keys, where the layer has it; keys and values go into the KV cache.
// Four lanes have a group of 32 values, eight each.
#include invocation
@group(0) @binding(#) var<storage, read> qkv: array<vec4<f32>>;
@group(0) @binding(#) var<storage, read_write> queries: array<vec4<f32>>;
#if ROTATED
@group(0) @binding(#) var<storage, read> rotation: array<vec2<f32>>;
#endif
#include kv_write C=keys
#include kv_write C=values

#if ROTATED
// Pairs `pair` and `pair + 1` of a head, rotated by their angles at `position`.
fn rope(v: vec4<f32>, position: u32, pair: u32) -> vec4<f32> {
  if (pair >= ROTARY / 2u) {
    return v;
  }
  let a = rotation[position * (ROTARY / 2u) + pair];
  let first = vec2<f32>(v.x * a.x - v.y * a.y, v.x * a.y + v.y * a.x);
  if (pair + 1u >= ROTARY / 2u) {
    return vec4<f32>(first, v.zw);
  }
  let b = rotation[position * (ROTARY / 2u) + pair + 1u];
  return vec4<f32>(first, v.z * b.x - v.w * b.y, v.z * b.y + v.w * b.x);
}
#endif

@compute @workgroup_size(THREADS)
fn main(id: Lane) {
  let token = id.workgroup.x;
  let position = step.past + token;
  let width = (Q_WIDTH + 2u * KV_WIDTH) / 8u;
  for (var i = thread(id); i < width; i += THREADS) {
    var a = qkv[(token * width + i) * 2u];
    var b = qkv[(token * width + i) * 2u + 1u];
    let group = i / 4u;
    let quarter = i % 4u;
    if (group < (Q_WIDTH + KV_WIDTH) / 32u) {
#if ROTATED
      let pair = (i * 8u % HEAD_DIM) / 2u;
      a = rope(a, position, pair);
      b = rope(b, position, pair + 2u);
#endif
      if (group < Q_WIDTH / 32u) {
        queries[(token * Q_WIDTH / 8u + i) * 2u] = a;
        queries[(token * Q_WIDTH / 8u + i) * 2u + 1u] = b;
      } else {
        write_keys(position * (KV_WIDTH / 32u) + group - Q_WIDTH / 32u, quarter, a, b);
      }
    } else {
      write_values(position * (KV_WIDTH / 32u) + group - (Q_WIDTH + KV_WIDTH) / 32u, quarter, a, b);
    }
  }
}
