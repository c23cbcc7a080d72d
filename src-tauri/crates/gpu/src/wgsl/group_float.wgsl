// 32 weights of one row as floats.
struct Group {
  values: array<vec4<f32>, 8>,
}

fn weights_of(w: Group) -> array<vec4<f32>, 8> {
  return w.values;
}
