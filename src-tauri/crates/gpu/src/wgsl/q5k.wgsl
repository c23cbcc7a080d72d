// Q5_K: headers and low nibbles as Q4_K has them, then one word a group whose byte e has in bit j the
// fifth bit of weight 4j + e.
@group(0) @binding(#) var<storage, read> w$M: array<vec4<u32>>;

fn fifth$M(bits: u32, start: u32) -> vec4<u32> {
  let shifts = vec4<u32>(start) + vec4<u32>(0u, 1u, 2u, 3u);
  return ((vec4<u32>(bits) >> shifts) & vec4<u32>(0x01010101u)) << vec4<u32>(4u);
}

fn group$M(row: u32, g: u32) -> Group {
  let at = row * GROUPS + g;
  let header = w$M[at / 8u];
  let q = w$M[ALL$M / 8u + at];
  let bits = w$M[ALL$M / 8u + ALL$M + at / 4u][at & 3u];
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
    (q & mask) | fifth$M(bits, 0u),
    ((q >> vec4<u32>(4u)) & mask) | fifth$M(bits, 4u),
    vec2<f32>(d.x * f32(scale)),
    d.y * f32(least),
  );
}
