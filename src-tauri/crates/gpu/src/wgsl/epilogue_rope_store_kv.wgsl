// Epilogue: RoPE of q and k, whose pairs are what it rotates; k and v go into the KV cache at the token's position.
@group(0) @binding(#) var<storage, read_write> queries: array<vec2<f32>>;
#if KV_F32
@group(0) @binding(#) var<storage, read_write> keys: array<vec2<f32>>;
@group(0) @binding(#) var<storage, read_write> values: array<vec2<f32>>;
#else
@group(0) @binding(#) var<storage, read_write> keys: array<u32>;
@group(0) @binding(#) var<storage, read_write> values: array<u32>;
#endif
#if ROTATED
@group(0) @binding(#) var<storage, read> rotation: array<vec2<f32>>;
#endif

#include stacked_rows

fn rope(v: vec2<f32>, pair: u32) -> vec2<f32> {
#if ROTATED
  if (pair < ROTARY / 2u) {
    let a = rotation[step.past * (ROTARY / 2u) + pair];
    return vec2<f32>(v.x * a.x - v.y * a.y, v.x * a.y + v.y * a.x);
  }
#endif
  return v;
}

fn finish(id: Lane, t: u32, column: u32) {
  for (var i = t; i < PAIRS; i += THREADS) {
    let pair = id.workgroup.x * PAIRS + i;
    let v = result(i);
    let within = pair % (HEAD_DIM / 2u);
    let cached = step.past * (ROWS1 / 2u);
    if (pair < ROWS0 / 2u) {
      queries[pair] = rope(v, within);
    } else if (pair < (ROWS0 + ROWS1) / 2u) {
      let k = rope(v, within);
#if KV_F32
      keys[cached + pair - ROWS0 / 2u] = k;
#else
      keys[cached + pair - ROWS0 / 2u] = pack2x16float(k);
#endif
    } else if (pair < ALL_PAIRS) {
#if KV_F32
      values[cached + pair - (ROWS0 + ROWS1) / 2u] = v;
#else
      values[cached + pair - (ROWS0 + ROWS1) / 2u] = pack2x16float(v);
#endif
    }
  }
}
