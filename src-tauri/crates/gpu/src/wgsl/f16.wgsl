// F16: IEEE half precision.
#include weights_16bit M=$M

fn four$M(a: u32, b: u32) -> vec4<f32> {
  return vec4<f32>(unpack2x16float(a), unpack2x16float(b));
}
