// Stores group `at` of `$X` by four neighbouring lanes of a subgroup: lane `quarter` has the eight values a, b.
fn store_$X(at: u32, quarter: u32, a: vec4<f32>, b: vec4<f32>) {
#if $X_DOT4
  let largest = max(abs(a), abs(b));
  var absmax = max(max(largest.x, largest.y), max(largest.z, largest.w));
  absmax = max(absmax, subgroupShuffleXor(absmax, 1u));
  let inverse = select(127.0 / absmax, 0.0, absmax == 0.0);
  let p = vec4<i32>(round(a * inverse));
  let q = vec4<i32>(round(b * inverse));
  let both = p + q;
  let scale = absmax / 127.0;
  var sum = scale * f32(both.x + both.y + both.z + both.w);
  sum += subgroupShuffleXor(sum, 1u);
  sum += subgroupShuffleXor(sum, 2u);
  let upper = subgroupShuffleXor(scale, 2u);
  let word = (quarter & 1u) * 2u;
  $X_bytes[at * 2u + quarter / 2u][word] = pack4xI8(p);
  $X_bytes[at * 2u + quarter / 2u][word + 1u] = pack4xI8(q);
  if (quarter == 0u) {
    $X_scales[at] = vec4<f32>(scale, upper, sum, 0.0);
  }
#elif $X_HALF
  let p = a / HALF_RANGE;
  let q = b / HALF_RANGE;
  $X_halves[at * 4u + quarter] = vec4<u32>(
    pack2x16float(p.xy), pack2x16float(p.zw), pack2x16float(q.xy), pack2x16float(q.zw),
  );
#else
  $X_floats[at * 8u + quarter * 2u] = a;
  $X_floats[at * 8u + quarter * 2u + 1u] = b;
#endif
}
