// 32 weights of one row as integers: w = scale · q − minimum, with a scale for each half of 16.
struct Group {
  low: vec4<u32>,
  high: vec4<u32>,
  scale: vec2<f32>,
  minimum: f32,
}

// A group as it is stored, not decoded yet: quants, and what its format has beside them. Groups are loaded ahead, so that
// loads overlap with arithmetic.
struct Packed {
  q: vec4<u32>,
  more: vec4<u32>,
  scales: vec2<u32>,
}

fn floats_of(bytes: u32) -> vec4<f32> {
  return vec4<f32>(unpack4xI8(bytes));
}

// The weights themselves, four by four.
fn weights_of(w: Group) -> array<vec4<f32>, 8> {
  let minimum = vec4<f32>(w.minimum);
  return array<vec4<f32>, 8>(
    w.scale.x * floats_of(w.low.x) - minimum,
    w.scale.x * floats_of(w.low.y) - minimum,
    w.scale.x * floats_of(w.low.z) - minimum,
    w.scale.x * floats_of(w.low.w) - minimum,
    w.scale.y * floats_of(w.high.x) - minimum,
    w.scale.y * floats_of(w.high.y) - minimum,
    w.scale.y * floats_of(w.high.z) - minimum,
    w.scale.y * floats_of(w.high.w) - minimum,
  );
}
