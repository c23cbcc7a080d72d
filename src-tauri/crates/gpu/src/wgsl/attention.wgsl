// Flash attention of one chunk of the KV cache, for query heads that share a key head and TOKENS tokens a workgroup:
// online softmax over tiles of positions, with the causal mask.
#include invocation
@group(0) @binding(#) var<storage, read> queries: array<vec4<f32>>;
#include kv_read
@group(0) @binding(#) var<storage, read_write> sums: array<vec4<f32>>;
@group(0) @binding(#) var<storage, read_write> stats: array<vec2<f32>>;

const TILE = 64u;
const EIGHTS = HEAD_DIM / 8u;
// Invocations that share eight components, each with its part of the positions.
const SPLITS = THREADS / EIGHTS;
// The initial maximum, and the score of masked positions.
const MIN_SCORE = -1e30;
const MASKED = -3e30;
var<workgroup> q: array<vec4<f32>, ROWS * HEAD_DIM / 4u>;
var<workgroup> weights: array<f32, ROWS * TILE>;
var<workgroup> row_max: array<f32, ROWS>;
var<workgroup> row_sum: array<f32, ROWS>;
var<workgroup> rescale: array<f32, ROWS>;
var<workgroup> parts: array<vec4<f32>, 2u * THREADS>;

@compute @workgroup_size(THREADS)
fn main(id: Lane) {
  let t = thread(id);
  let first_head = id.workgroup.x * SHARED;
  let kv_head = first_head / (HEADS / KV_HEADS);
  let token = id.workgroup.z * TOKENS;
  let end = step.past + min(token + TOKENS, step.tokens);
  let first = id.workgroup.y * step.chunk;
  let last = min(first + step.chunk, end);

  // Row r is head r % SHARED of token r / SHARED.
  for (var i = t; i < ROWS * HEAD_DIM / 4u; i += THREADS) {
    let r = i / (HEAD_DIM / 4u);
    let head = (token + r / SHARED) * HEADS + first_head + r % SHARED;
    q[i] = queries[head * HEAD_DIM / 4u + i % (HEAD_DIM / 4u)] * inverseSqrt(f32(HEAD_DIM));
  }
  if (t < ROWS) {
    row_max[t] = MIN_SCORE;
    row_sum[t] = 0.0;
  }
  let eight = t % EIGHTS;
  let split = t / EIGHTS;
  // Rows are unrolled: compilers keep arrays that loops index in memory.
#each R=ROWS
  var low$R = vec4<f32>(0.0);
  var high$R = vec4<f32>(0.0);
#end

  for (var base = first; base < last; base += TILE) {
    let count = min(TILE, last - base);
    workgroupBarrier();
    // Scores: four lanes a position, each with every fourth piece of eight values.
    for (var at = t / 4u; at < TILE; at += THREADS / 4u) {
#each R=ROWS
      var score$R = 0.0;
#end
      if (at < count) {
        let head = ((base + at) * KV_HEADS + kv_head) * (HEAD_DIM / 32u);
        for (var g = 0u; g < HEAD_DIM / 32u; g++) {
          let k = key_eight(head + g, t & 3u);
          let start = g * 8u + (t & 3u) * 2u;
#each R=ROWS
          score$R += dot(q[$Ru * HEAD_DIM / 4u + start], k[0]) + dot(q[$Ru * HEAD_DIM / 4u + start + 1u], k[1]);
#end
        }
      }
#each R=ROWS
      score$R += subgroupShuffleXor(score$R, 1u);
      score$R += subgroupShuffleXor(score$R, 2u);
      if ((t & 3u) == 0u) {
        let seen = at < count && base + at <= step.past + token + $Ru / SHARED;
        weights[$Ru * TILE + at] = select(MASKED, score$R, seen);
      }
#end
    }
    workgroupBarrier();
    for (var r = id.subgroup; r < ROWS; r += id.subgroups) {
      var top = row_max[r];
      for (var i = id.lane; i < TILE; i += id.width) {
        top = max(top, weights[r * TILE + i]);
      }
      top = subgroupMax(top);
      var all = 0.0;
      for (var i = id.lane; i < TILE; i += id.width) {
        let w = exp(weights[r * TILE + i] - top);
        weights[r * TILE + i] = w;
        all += w;
      }
      all = subgroupAdd(all);
      if (id.lane == 0u) {
        rescale[r] = exp(row_max[r] - top);
        row_sum[r] = row_sum[r] * rescale[r] + all;
        row_max[r] = top;
      }
    }
    workgroupBarrier();
#each R=ROWS
    low$R *= rescale[$R];
    high$R *= rescale[$R];
#end
    for (var at = split; at < count; at += SPLITS) {
      let head = ((base + at) * KV_HEADS + kv_head) * (HEAD_DIM / 32u);
      let v = value_eight(head + eight / 4u, eight % 4u);
#each R=ROWS
      low$R += weights[$Ru * TILE + at] * v[0];
      high$R += weights[$Ru * TILE + at] * v[1];
#end
    }
  }

#each R=ROWS
  workgroupBarrier();
  parts[2u * t] = low$R;
  parts[2u * t + 1u] = high$R;
  workgroupBarrier();
  write_row($Ru, t, token, first_head, id.workgroup.y);
#end
}

// Adds up the parts of a row.
fn write_row(r: u32, t: u32, token: u32, first_head: u32, at_chunk: u32) {
  let chunk = ((token + r / SHARED) * HEADS + first_head + r % SHARED) * step.chunks + at_chunk;
  if (t < 2u * EIGHTS) {
    var whole = vec4<f32>(0.0);
    for (var s = 0u; s < SPLITS; s++) {
      whole += parts[s * 2u * EIGHTS + t];
    }
    sums[chunk * HEAD_DIM / 4u + t] = whole;
  }
  if (t == 0u) {
    stats[chunk] = vec2<f32>(row_max[r], row_sum[r]);
  }
}
