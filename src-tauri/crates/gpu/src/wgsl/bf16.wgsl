// BF16: the upper half of an f32.
#include weights_16bit M=$M

fn four$M(a: u32, b: u32) -> vec4<f32> {
  let top = 0xffff0000u;
  return bitcast<vec4<f32>>(vec4<u32>(a << 16u, a & top, b << 16u, b & top));
}
