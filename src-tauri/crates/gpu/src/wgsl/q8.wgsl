// Q8_0: 32 bytes a group, then f16 d a group.
@group(0) @binding(#) var<storage, read> w$M: array<vec4<u32>>;

fn group$M(row: u32, g: u32) -> Group {
  let at = row * GROUPS + g;
  let pair = unpack2x16float(w$M[2u * ALL$M + at / 8u][(at / 2u) & 3u]);
  let d = select(pair.x, pair.y, (at & 1u) == 1u);
  return Group(w$M[2u * at], w$M[2u * at + 1u], vec2<f32>(d), 0.0);
}
