// What differs from run to run: positions before these tokens, the token that is meant, positions of a chunk
// of the cache, how many chunks there are, what picks a token, and how many tokens these are.
struct Step {
  past: u32,
  column: u32,
  chunk: u32,
  chunks: u32,
  noise: f32,
  tokens: u32,
}
var<immediate> step: Step;

// Who an invocation is: subgroups may have any size from 4 up, so nothing is reckoned from the local index.
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
