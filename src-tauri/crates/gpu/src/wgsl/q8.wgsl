// Q8_0: 32 bytes a group, then f16 d a group.
@group(0) @binding(#) var<storage, read> w$M: array<vec4<u32>>;

fn load$M(row: u32, g: u32) -> Packed {
  let at = row * GROUPS + g;
  return Packed(w$M[2u * at], w$M[2u * at + 1u], vec2<u32>(w$M[2u * ALL$M + at / 8u][(at / 2u) & 3u]));
}

fn decode$M(p: Packed, row: u32, g: u32) -> Group {
  let pair = unpack2x16float(p.scales.x);
  let d = select(pair.x, pair.y, ((row * GROUPS + g) & 1u) == 1u);
  return Group(p.q, p.more, vec2<f32>(d), 0.0);
}
