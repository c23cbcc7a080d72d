// Q5_K: headers and low nibbles as in Q4_K, then one word a group: byte e has in bit j the fifth bit of weight 4j + e.
@group(0) @binding(#) var<storage, read> w$M: array<vec4<u32>>;
#include k_quant_scales M=$M

fn fifth$M(bits: u32, start: u32) -> vec4<u32> {
  let shifts = vec4<u32>(start) + vec4<u32>(0u, 1u, 2u, 3u);
  return ((vec4<u32>(bits) >> shifts) & vec4<u32>(0x01010101u)) << vec4<u32>(4u);
}

fn group$M(row: u32, g: u32) -> Group {
  let at = row * GROUPS + g;
  let scales = k_quant_scales$M(w$M[at / 8u], g);
  let q = w$M[ALL$M / 8u + at];
  let bits = w$M[ALL$M / 8u + ALL$M + at / 4u][at & 3u];
  let mask = vec4<u32>(0x0f0f0f0fu);
  return Group(
    (q & mask) | fifth$M(bits, 0u),
    ((q >> vec4<u32>(4u)) & mask) | fifth$M(bits, 4u),
    vec2<f32>(scales.x),
    scales.y,
  );
}
