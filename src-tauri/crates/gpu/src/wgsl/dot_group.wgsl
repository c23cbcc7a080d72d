// A group of weights times group `at` of the activations `x`.
fn dot_group(w: Group, at: u32) -> f32 {
#if x_DOT4
  let a = x_bytes[at * 2u];
  let b = x_bytes[at * 2u + 1u];
  let s = x_scales[at];
  let low = dot4I8Packed(w.low.x, a.x) + dot4I8Packed(w.low.y, a.y)
    + dot4I8Packed(w.low.z, a.z) + dot4I8Packed(w.low.w, a.w);
  let high = dot4I8Packed(w.high.x, b.x) + dot4I8Packed(w.high.y, b.y)
    + dot4I8Packed(w.high.z, b.z) + dot4I8Packed(w.high.w, b.w);
  return dot(w.scale * s.xy, vec2<f32>(f32(low), f32(high))) - w.minimum * s.z;
#else
  let v = weights_of(w);
  let x = at * 8u;
  return dot(v[0], x_floats[x]) + dot(v[1], x_floats[x + 1u])
    + dot(v[2], x_floats[x + 2u]) + dot(v[3], x_floats[x + 3u])
    + dot(v[4], x_floats[x + 4u]) + dot(v[5], x_floats[x + 5u])
    + dot(v[6], x_floats[x + 6u]) + dot(v[7], x_floats[x + 7u]);
#endif
}
