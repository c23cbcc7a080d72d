// Q4_K: headers of 16 bytes a super-block (d, dmin, 6-bit scales and minima), then 16 bytes a group.
@group(0) @binding(#) var<storage, read> w$M: array<vec4<u32>>;
#include k_quant_scales M=$M

fn load$M(row: u32, g: u32) -> Packed {
  let at = row * GROUPS + g;
  return Packed(w$M[ALL$M / 8u + at], w$M[at / 8u], vec2<u32>(0u));
}

fn decode$M(p: Packed, row: u32, g: u32) -> Group {
  let scales = k_quant_scales$M(p.more, g);
  let mask = vec4<u32>(0x0f0f0f0fu);
  return Group(
    p.q & mask,
    (p.q >> vec4<u32>(4u)) & mask,
    vec2<f32>(scales.x),
    scales.y,
  );
}
