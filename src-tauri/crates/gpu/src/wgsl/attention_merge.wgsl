// x ← the attended heads of a token, merged from its chunks.
#include invocation
#include activations X=x ACCESS=read_write
#include store_activations X=x
#include attention_chunks

@compute @workgroup_size(THREADS)
fn main(id: Lane) {
  let token = id.workgroup.x;
  for (var i = thread(id); i < GROUPS * 4u; i += THREADS) {
    let v = merged(token, i / 4u, i % 4u, step.chunks);
    store_x(token * GROUPS + i / 4u, i % 4u, v[0], v[1]);
  }
}
