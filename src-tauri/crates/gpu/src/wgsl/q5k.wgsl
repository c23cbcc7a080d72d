// Q5_K: headers and low nibbles as in Q4_K, then one word a group: byte e has in bit j the fifth bit of weight 4j + e.
@group(0) @binding(#) var<storage, read> w$M: array<vec4<u32>>;
#include k_quant_scales M=$M

fn fifth$M(bits: u32, start: u32) -> vec4<u32> {
  let shifts = vec4<u32>(start) + vec4<u32>(0u, 1u, 2u, 3u);
  return ((vec4<u32>(bits) >> shifts) & vec4<u32>(0x01010101u)) << vec4<u32>(4u);
}

fn load$M(row: u32, g: u32) -> Packed {
  let at = row * GROUPS + g;
  let bits = w$M[ALL$M / 8u + ALL$M + at / 4u][at & 3u];
  return Packed(w$M[ALL$M / 8u + at], w$M[at / 8u], vec2<u32>(bits));
}

fn decode$M(p: Packed, row: u32, g: u32) -> Group {
  let scales = k_quant_scales$M(p.more, g);
  let bits = p.scales.x;
  let mask = vec4<u32>(0x0f0f0f0fu);
  return Group(
    (p.q & mask) | fifth$M(bits, 0u),
    ((p.q >> vec4<u32>(4u)) & mask) | fifth$M(bits, 4u),
    vec2<f32>(scales.x),
    scales.y,
  );
}
