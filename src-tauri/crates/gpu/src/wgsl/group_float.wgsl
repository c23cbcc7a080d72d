// 32 weights of one row as floats.
struct Group {
  values: array<vec4<f32>, 8>,
}

// A group as it is stored, not decoded yet.
struct Packed {
  words: array<vec4<u32>, 4>,
}

fn weights_of(w: Group) -> array<vec4<f32>, 8> {
  return w.values;
}
