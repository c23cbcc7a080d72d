// IQ4_XS: 16 bytes of nibbles a group, then headers of 8 bytes a super-block (d, the two high bits of eight 6-bit scales,
// and their nibbles).
@group(0) @binding(#) var<storage, read> w$M: array<vec4<u32>>;
#include iq4_values M=$M

fn load$M(row: u32, g: u32) -> Packed {
  let at = row * GROUPS + g;
  return Packed(w$M[at], w$M[ALL$M + at / 16u], vec2<u32>(0u));
}

fn decode$M(p: Packed, row: u32, g: u32) -> Group {
  let block = (row * GROUPS + g) / 8u;
  let header = select(p.more.xy, p.more.zw, (block & 1u) == 1u);
  let low = extractBits(header.y, (g & 7u) * 4u, 4u);
  let high = extractBits(header.x, 16u + (g & 7u) * 2u, 2u);
  let scale = unpack2x16float(header.x).x * (f32(low | (high << 4u)) - 32.0);
  return Group(
    iq4_values$M(p.q),
    iq4_values$M(p.q >> vec4<u32>(4u)),
    vec2<f32>(scale),
    0.0,
  );
}
