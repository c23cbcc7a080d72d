// 32 weights of one row as integers: w = scale · q − least, one scale for the lower 16 and one for the upper.
struct Group {
  low: vec4<u32>,
  high: vec4<u32>,
  scale: vec2<f32>,
  least: f32,
}

fn floats_of(bytes: u32) -> vec4<f32> {
  return vec4<f32>(unpack4xI8(bytes));
}

// The weights themselves, four by four.
fn weights_of(w: Group) -> array<vec4<f32>, 8> {
  let least = vec4<f32>(w.least);
  return array<vec4<f32>, 8>(
    w.scale.x * floats_of(w.low.x) - least,
    w.scale.x * floats_of(w.low.y) - least,
    w.scale.x * floats_of(w.low.z) - least,
    w.scale.x * floats_of(w.low.w) - least,
    w.scale.y * floats_of(w.high.x) - least,
    w.scale.y * floats_of(w.high.y) - least,
    w.scale.y * floats_of(w.high.z) - least,
    w.scale.y * floats_of(w.high.w) - least,
  );
}
