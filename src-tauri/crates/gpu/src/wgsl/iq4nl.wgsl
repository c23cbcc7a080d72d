// IQ4_NL: 16 bytes of nibbles a group, then f16 d a group.
@group(0) @binding(#) var<storage, read> w$M: array<vec4<u32>>;
#include iq4_values M=$M

fn group$M(row: u32, g: u32) -> Group {
  let at = row * GROUPS + g;
  let q = w$M[at];
  let pair = unpack2x16float(w$M[ALL$M + at / 8u][(at / 2u) & 3u]);
  let d = select(pair.x, pair.y, (at & 1u) == 1u);
  return Group(
    iq4_values$M(q),
    iq4_values$M(q >> vec4<u32>(4u)),
    vec2<f32>(d),
    0.0,
  );
}
