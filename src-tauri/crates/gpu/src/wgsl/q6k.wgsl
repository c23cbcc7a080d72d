// Q6_K: 16 bytes of low nibbles a group, 8 bytes of upper bits a group, 16 scales a super-block, f16 d a
// super-block. In each word of upper bits, byte e has in bits 2j and 2j + 1 those of weight 4j + e.
@group(0) @binding(#) var<storage, read> w$M: array<vec4<u32>>;

// Nibbles and upper bits to signed bytes: 32 stands for zero.
fn signed$M(nibbles: vec4<u32>, bits: u32) -> vec4<u32> {
  let shifts = vec4<u32>(0u, 2u, 4u, 6u);
  let upper = ((vec4<u32>(bits) >> shifts) & vec4<u32>(0x03030303u)) << vec4<u32>(4u);
  let lifted = (nibbles | upper | vec4<u32>(0x80808080u)) - vec4<u32>(0x20202020u);
  return lifted ^ vec4<u32>(0x80808080u);
}

fn load$M(row: u32, g: u32) -> Packed {
  let at = row * GROUPS + g;
  let block = at / 8u;
  let scales = w$M[ALL$M + ALL$M / 2u + block][(g & 7u) / 2u];
  let halves = w$M[ALL$M + ALL$M / 2u + ALL$M / 8u + block / 8u][(block / 2u) & 3u];
  return Packed(w$M[at], w$M[ALL$M + at / 2u], vec2<u32>(scales, halves));
}

fn decode$M(p: Packed, row: u32, g: u32) -> Group {
  let at = row * GROUPS + g;
  let pair = unpack2x16float(p.scales.y);
  let d = select(pair.x, pair.y, ((at / 8u) & 1u) == 1u);
  let scales = bitcast<i32>(p.scales.x);
  let shift = (g & 1u) * 16u;
  let scale = vec2<f32>(
    f32(extractBits(scales, shift, 8u)),
    f32(extractBits(scales, shift + 8u, 8u)),
  );
  let upper = select(p.more.xy, p.more.zw, (at & 1u) == 1u);
  let mask = vec4<u32>(0x0f0f0f0fu);
  return Group(
    signed$M(p.q & mask, upper.x),
    signed$M((p.q >> vec4<u32>(4u)) & mask, upper.y),
    d * scale,
    0.0,
  );
}
