// Q4_K: headers of 16 bytes a super-block (d, dmin, 6-bit scales and minima), then 16 bytes a group.
@group(0) @binding(#) var<storage, read> w$M: array<vec4<u32>>;

fn group$M(row: u32, g: u32) -> Group {
  let at = row * GROUPS + g;
  let header = w$M[at / 8u];
  let q = w$M[ALL$M / 8u + at];
  let d = unpack2x16float(header.x);
  let shift = (g & 3u) * 8u;
  let first = (header.y >> shift) & 255u;
  let second = (header.z >> shift) & 255u;
  let third = (header.w >> shift) & 255u;
  let lower = (g & 7u) < 4u;
  let scale = select((third & 15u) | ((first >> 6u) << 4u), first & 63u, lower);
  let least = select((third >> 4u) | ((second >> 6u) << 4u), second & 63u, lower);
  let mask = vec4<u32>(0x0f0f0f0fu);
  return Group(
    q & mask,
    (q >> vec4<u32>(4u)) & mask,
    vec2<f32>(d.x * f32(scale)),
    d.y * f32(least),
  );
}
