// x ← norm(source), one workgroup a token.
#include invocation
#include activations X=x ACCESS=read_write
#include store_activations X=x
@group(0) @binding(#) var<storage, read> source: array<vec4<f32>>;
@group(0) @binding(#) var<storage, read> norm: array<vec4<f32>>;
#include inverse_rms

@compute @workgroup_size(THREADS)
fn main(id: Lane) {
  let token = id.workgroup.x;
  let row = token * GROUPS * 8u;
  let inverse = inverse_rms(id, row);
  for (var i = thread(id); i < GROUPS * 4u; i += THREADS) {
    let a = inverse * source[row + 2u * i] * norm[2u * i];
    let b = inverse * source[row + 2u * i + 1u] * norm[2u * i + 1u];
    store_x(token * GROUPS + i / 4u, i % 4u, a, b);
  }
}
