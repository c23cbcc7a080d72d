// Reads keys and values, eight at a time; `at` counts groups of 32.
#if KV_F32
@group(0) @binding(#) var<storage, read> keys: array<vec4<f32>>;
@group(0) @binding(#) var<storage, read> values: array<vec4<f32>>;
#elif KV_F16
@group(0) @binding(#) var<storage, read> keys: array<vec4<u32>>;
@group(0) @binding(#) var<storage, read> values: array<vec4<u32>>;
#else
@group(0) @binding(#) var<storage, read> keys: array<vec2<u32>>;
@group(0) @binding(#) var<storage, read> keys_scales: array<f32>;
@group(0) @binding(#) var<storage, read> values: array<vec2<u32>>;
@group(0) @binding(#) var<storage, read> values_scales: array<f32>;
#endif

fn key_eight(at: u32, quarter: u32) -> array<vec4<f32>, 2> {
#if KV_F32
  return array<vec4<f32>, 2>(keys[at * 8u + quarter * 2u], keys[at * 8u + quarter * 2u + 1u]);
#elif KV_F16
  let k = keys[at * 4u + quarter];
  return array<vec4<f32>, 2>(
    vec4<f32>(unpack2x16float(k.x), unpack2x16float(k.y)),
    vec4<f32>(unpack2x16float(k.z), unpack2x16float(k.w)),
  );
#else
  let k = keys[at * 4u + quarter];
  let scale = keys_scales[at];
  return array<vec4<f32>, 2>(
    scale * vec4<f32>(unpack4xI8(k.x)),
    scale * vec4<f32>(unpack4xI8(k.y)),
  );
#endif
}

fn value_eight(at: u32, quarter: u32) -> array<vec4<f32>, 2> {
#if KV_F32
  return array<vec4<f32>, 2>(values[at * 8u + quarter * 2u], values[at * 8u + quarter * 2u + 1u]);
#elif KV_F16
  let v = values[at * 4u + quarter];
  return array<vec4<f32>, 2>(
    vec4<f32>(unpack2x16float(v.x), unpack2x16float(v.y)),
    vec4<f32>(unpack2x16float(v.z), unpack2x16float(v.w)),
  );
#else
  let v = values[at * 4u + quarter];
  let scale = values_scales[at];
  return array<vec4<f32>, 2>(
    scale * vec4<f32>(unpack4xI8(v.x)),
    scale * vec4<f32>(unpack4xI8(v.y)),
  );
#endif
}
