// Weights of 16 bits, 64 bytes a group; `four$M` decodes four from two words.
@group(0) @binding(#) var<storage, read> w$M: array<vec4<u32>>;

fn load$M(row: u32, g: u32) -> Packed {
  let at = 4u * (row * GROUPS + g);
  return Packed(array<vec4<u32>, 4>(w$M[at], w$M[at + 1u], w$M[at + 2u], w$M[at + 3u]));
}

fn decode$M(p: Packed, row: u32, g: u32) -> Group {
  let a = p.words[0];
  let b = p.words[1];
  let c = p.words[2];
  let d = p.words[3];
  return Group(array<vec4<f32>, 8>(
    four$M(a.x, a.y), four$M(a.z, a.w), four$M(b.x, b.y), four$M(b.z, b.w),
    four$M(c.x, c.y), four$M(c.z, c.w), four$M(d.x, d.y), four$M(d.z, d.w),
  ));
}
