// Writes group `at` of the KV cache's `$C` by four neighbouring lanes, each with eight values.
#if KV_F32
@group(0) @binding(#) var<storage, read_write> $C: array<vec4<f32>>;
#elif KV_F16
@group(0) @binding(#) var<storage, read_write> $C: array<vec4<u32>>;
#else
@group(0) @binding(#) var<storage, read_write> $C: array<vec2<u32>>;
@group(0) @binding(#) var<storage, read_write> $C_scales: array<f32>;
#endif

fn write_$C(at: u32, quarter: u32, a: vec4<f32>, b: vec4<f32>) {
#if KV_F32
  $C[at * 8u + quarter * 2u] = a;
  $C[at * 8u + quarter * 2u + 1u] = b;
#elif KV_F16
  $C[at * 4u + quarter] = vec4<u32>(
    pack2x16float(a.xy), pack2x16float(a.zw), pack2x16float(b.xy), pack2x16float(b.zw),
  );
#else
  let largest = max(abs(a), abs(b));
  var absmax = max(max(largest.x, largest.y), max(largest.z, largest.w));
  absmax = max(absmax, subgroupShuffleXor(absmax, 1u));
  absmax = max(absmax, subgroupShuffleXor(absmax, 2u));
  let inverse = select(127.0 / absmax, 0.0, absmax == 0.0);
  let p = vec4<i32>(round(a * inverse));
  let q = vec4<i32>(round(b * inverse));
  $C[at * 4u + quarter] = vec2<u32>(pack4xI8(p), pack4xI8(q));
  if (quarter == 0u) {
    $C_scales[at] = absmax / 127.0;
  }
#endif
}
