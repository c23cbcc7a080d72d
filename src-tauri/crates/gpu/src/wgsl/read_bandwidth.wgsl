// Reads a buffer once and sums it, to measure the bandwidth.
#include invocation
@group(0) @binding(#) var<storage, read> source: array<vec4<u32>>;
@group(0) @binding(#) var<storage, read_write> sums: array<vec4<u32>>;

@compute @workgroup_size(THREADS)
fn main(id: Lane) {
  let own = id.workgroup.x * THREADS + thread(id);
  var sum = vec4<u32>(step.past);
  for (var round = 0u; round < ROUNDS; round++) {
    sum += source[round * READERS * THREADS + own];
  }
  sums[own] = sum;
}
