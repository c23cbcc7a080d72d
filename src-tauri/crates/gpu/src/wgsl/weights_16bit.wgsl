// Weights of 16 bits, 64 bytes a group; `four$M` decodes four from two words.
@group(0) @binding(#) var<storage, read> w$M: array<vec4<u32>>;

fn group$M(row: u32, g: u32) -> Group {
  let at = 4u * (row * GROUPS + g);
  let a = w$M[at];
  let b = w$M[at + 1u];
  let c = w$M[at + 2u];
  let d = w$M[at + 3u];
  return Group(array<vec4<f32>, 8>(
    four$M(a.x, a.y), four$M(a.z, a.w), four$M(b.x, b.y), four$M(b.z, b.w),
    four$M(c.x, c.y), four$M(c.z, c.w), four$M(d.x, d.y), four$M(d.z, d.w),
  ));
}
