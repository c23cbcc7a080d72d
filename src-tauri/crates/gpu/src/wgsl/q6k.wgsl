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

fn group$M(row: u32, g: u32) -> Group {
  let at = row * GROUPS + g;
  let block = at / 8u;
  let q = w$M[at];
  let bits = w$M[ALL$M + at / 2u];
  let scales = w$M[ALL$M + ALL$M / 2u + block][(g & 7u) / 2u];
  let halves = w$M[ALL$M + ALL$M / 2u + ALL$M / 8u + block / 8u][(block / 2u) & 3u];
  let pair = unpack2x16float(halves);
  let d = select(pair.x, pair.y, (block & 1u) == 1u);
  let shift = (g & 1u) * 16u;
  let scale = vec2<f32>(
    f32(extractBits(bitcast<i32>(scales), shift, 8u)),
    f32(extractBits(bitcast<i32>(scales), shift + 8u, 8u)),
  );
  let upper = select(bits.xy, bits.zw, (at & 1u) == 1u);
  let mask = vec4<u32>(0x0f0f0f0fu);
  return Group(
    signed$M(q & mask, upper.x),
    signed$M((q >> vec4<u32>(4u)) & mask, upper.y),
    d * scale,
    0.0,
  );
}
