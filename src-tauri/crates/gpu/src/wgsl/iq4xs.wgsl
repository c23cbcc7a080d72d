// IQ4_XS: 16 bytes of nibbles a group, then headers of 8 bytes a super-block (d, the two high bits of eight 6-bit scales,
// and their nibbles).
@group(0) @binding(#) var<storage, read> w$M: array<vec4<u32>>;
#include iq4_values M=$M

fn group$M(row: u32, g: u32) -> Group {
  let at = row * GROUPS + g;
  let block = at / 8u;
  let q = w$M[at];
  let headers = w$M[ALL$M + block / 2u];
  let header = select(headers.xy, headers.zw, (block & 1u) == 1u);
  let low = extractBits(header.y, (g & 7u) * 4u, 4u);
  let high = extractBits(header.x, 16u + (g & 7u) * 2u, 2u);
  let scale = unpack2x16float(header.x).x * (f32(low | (high << 4u)) - 32.0);
  return Group(
    iq4_values$M(q),
    iq4_values$M(q >> vec4<u32>(4u)),
    vec2<f32>(scale),
    0.0,
  );
}
