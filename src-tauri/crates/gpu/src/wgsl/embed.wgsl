// target ← the tokens' rows of the table, where they are in this part of it.
#include invocation
#weights
@group(0) @binding(#) var<storage, read> tokens: array<u32>;
@group(0) @binding(#) var<storage, read_write> target_rows: array<vec4<f32>>;

@compute @workgroup_size(THREADS)
fn main(id: Lane) {
  let token = id.workgroup.x;
  let row = tokens[token] - FIRST;
  if (tokens[token] < FIRST || row >= ROWS0) {
    return;
  }
  for (var g = thread(id); g < GROUPS; g += THREADS) {
    let w = weights_of(decode0(load0(row, g), row, g));
    let at = (token * GROUPS + g) * 8u;
    target_rows[at] = w[0];
    target_rows[at + 1u] = w[1];
    target_rows[at + 2u] = w[2];
    target_rows[at + 3u] = w[3];
    target_rows[at + 4u] = w[4];
    target_rows[at + 5u] = w[5];
    target_rows[at + 6u] = w[6];
    target_rows[at + 7u] = w[7];
  }
}
