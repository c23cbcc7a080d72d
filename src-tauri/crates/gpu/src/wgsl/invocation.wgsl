// Divides activations in f16, and multiplies the weights that meet them: activations behind SwiGLU may exceed the range
// of f16, and weights are small.
const HALF_RANGE = 64.0;

// The parameters of a pass.
struct Step {
  // Positions in the KV cache before the pass.
  past: u32,
  // Index of the first token whose logits are computed.
  column: u32,
  // Positions of a chunk of the KV cache, and the number of chunks.
  chunk: u32,
  chunks: u32,
  // Uniform draw of the sampler, in 0..1.
  u: f32,
  // New tokens.
  tokens: u32,
}
var<immediate> step: Step;

// The index of an invocation by subgroup and lane: subgroups have any size from 4 up, and no fixed order of local indices.
struct Lane {
  @builtin(workgroup_id) workgroup: vec3<u32>,
  @builtin(subgroup_size) width: u32,
  @builtin(subgroup_id) subgroup: u32,
  @builtin(num_subgroups) subgroups: u32,
  @builtin(subgroup_invocation_id) lane: u32,
}

fn thread(id: Lane) -> u32 {
  return id.subgroup * id.width + id.lane;
}
