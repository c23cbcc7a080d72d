// Q4_K: headers of 16 bytes a super-block (d, dmin, 6-bit scales and minima), then 16 bytes a group.
@group(0) @binding(#) var<storage, read> w$M: array<vec4<u32>>;
#include k_quant_scales M=$M

fn group$M(row: u32, g: u32) -> Group {
  let at = row * GROUPS + g;
  let scales = k_quant_scales$M(w$M[at / 8u], g);
  let q = w$M[ALL$M / 8u + at];
  let mask = vec4<u32>(0x0f0f0f0fu);
  return Group(
    q & mask,
    (q >> vec4<u32>(4u)) & mask,
    vec2<f32>(scales.x),
    scales.y,
  );
}
