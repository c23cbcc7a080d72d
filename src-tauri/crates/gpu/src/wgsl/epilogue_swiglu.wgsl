// Epilogue: silu(gate) · up become the activations `f`. A pair is a row of the gate and the same row of up.
#include activations X=f ACCESS=read_write
#include store_activations X=f

fn load_first(pair: u32, g: u32) -> Packed {
  return load0(pair, g);
}

fn load_second(pair: u32, g: u32) -> Packed {
  return load1(pair, g);
}

fn decode_first(p: Packed, pair: u32, g: u32) -> Group {
  return decode0(p, pair, g);
}

fn decode_second(p: Packed, pair: u32, g: u32) -> Group {
  return decode1(p, pair, g);
}

fn gated(v: vec2<f32>) -> f32 {
  return v.x / (1.0 + exp(-v.x)) * v.y;
}

fn four(at: u32) -> vec4<f32> {
  return vec4<f32>(gated(result(at)), gated(result(at + 1u)), gated(result(at + 2u)), gated(result(at + 3u)));
}

fn finish(id: Lane, t: u32, column: u32) {
  // PAIRS is a multiple of 32, so that the groups are whole.
  for (var i = t; i < PAIRS * COLUMNS / 8u; i += THREADS) {
    let c = i / (PAIRS / 8u);
    let within = i % (PAIRS / 8u);
    let group = (id.workgroup.x * PAIRS) / 32u + within / 4u;
    if (group < ALL_PAIRS / 32u) {
      let at = c * PAIRS + within * 8u;
      store_f((column + c) * (ALL_PAIRS / 32u) + group, within % 4u, four(at), four(at + 4u));
    }
  }
}
