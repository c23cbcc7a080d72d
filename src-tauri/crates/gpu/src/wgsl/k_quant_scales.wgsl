// Scale and minimum of group `g` from a super-block's header: d, dmin, then 6-bit scales and minima.
fn k_quant_scales$M(header: vec4<u32>, g: u32) -> vec2<f32> {
  let d = unpack2x16float(header.x);
  let shift = (g & 3u) * 8u;
  let first = (header.y >> shift) & 255u;
  let second = (header.z >> shift) & 255u;
  let third = (header.w >> shift) & 255u;
  let lower = (g & 7u) < 4u;
  let scale = select((third & 15u) | ((first >> 6u) << 4u), first & 63u, lower);
  let minimum = select((third >> 4u) | ((second >> 6u) << 4u), second & 63u, lower);
  return vec2<f32>(d.x * f32(scale), d.y * f32(minimum));
}
