// Flash attention of one chunk of the KV cache, for query heads that share a key head and TOKENS tokens a workgroup:
// online softmax over tiles of positions, with the causal mask.
#include invocation
@group(0) @binding(#) var<storage, read> queries: array<f32>;
#include kv_read
@group(0) @binding(#) var<storage, read_write> sums: array<f32>;
@group(0) @binding(#) var<storage, read_write> stats: array<vec2<f32>>;

const TILE = 64u;
const PAIRS = HEAD_DIM / 2u;
// Invocations that share a pair of components, each with its part of the positions.
const SPLITS = THREADS / PAIRS;
const ROWS = SHARED * TOKENS;
// The initial maximum, and the score of masked positions.
const MIN_SCORE = -1e30;
const MASKED = -3e30;
var<workgroup> q: array<vec4<f32>, ROWS * HEAD_DIM / 4u>;
var<workgroup> weights: array<f32, ROWS * TILE>;
var<workgroup> row_max: array<f32, ROWS>;
var<workgroup> row_sum: array<f32, ROWS>;
var<workgroup> rescale: array<f32, ROWS>;
var<workgroup> parts: array<vec2<f32>, THREADS>;

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
    let start = head * HEAD_DIM + 4u * (i % (HEAD_DIM / 4u));
    let four = vec4<f32>(queries[start], queries[start + 1u], queries[start + 2u], queries[start + 3u]);
    q[i] = four * inverseSqrt(f32(HEAD_DIM));
  }
  if (t < ROWS) {
    row_max[t] = MIN_SCORE;
    row_sum[t] = 0.0;
  }
  let pair = t % PAIRS;
  let split = t / PAIRS;
  var sum: array<vec2<f32>, ROWS>;
  for (var r = 0u; r < ROWS; r++) {
    sum[r] = vec2<f32>(0.0);
  }

  for (var base = first; base < last; base += TILE) {
    let count = min(TILE, last - base);
    workgroupBarrier();
    // Scores: four lanes a position, each with every fourth piece of eight values.
    for (var at = t / 4u; at < TILE; at += THREADS / 4u) {
      var score: array<f32, ROWS>;
      for (var r = 0u; r < ROWS; r++) {
        score[r] = 0.0;
      }
      if (at < count) {
        let head = ((base + at) * KV_HEADS + kv_head) * (HEAD_DIM / 32u);
        for (var g = 0u; g < HEAD_DIM / 32u; g++) {
          let k = key_eight(head + g, t & 3u);
          for (var r = 0u; r < ROWS; r++) {
            let start = r * HEAD_DIM / 4u + g * 8u + (t & 3u) * 2u;
            score[r] += dot(q[start], k[0]) + dot(q[start + 1u], k[1]);
          }
        }
      }
      for (var r = 0u; r < ROWS; r++) {
        var s = score[r];
        s += subgroupShuffleXor(s, 1u);
        s += subgroupShuffleXor(s, 2u);
        if ((t & 3u) == 0u) {
          let seen = at < count && base + at <= step.past + token + r / SHARED;
          weights[r * TILE + at] = select(MASKED, s, seen);
        }
      }
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
    for (var r = 0u; r < ROWS; r++) {
      sum[r] *= rescale[r];
    }
    for (var at = split; at < count; at += SPLITS) {
      let head = ((base + at) * KV_HEADS + kv_head) * (HEAD_DIM / 32u);
      let v = value_pair(head + pair / 16u, pair % 16u);
      for (var r = 0u; r < ROWS; r++) {
        sum[r] += weights[r * TILE + at] * v;
      }
    }
  }

  for (var r = 0u; r < ROWS; r++) {
    workgroupBarrier();
    parts[t] = sum[r];
    workgroupBarrier();
    let chunk = ((token + r / SHARED) * HEADS + first_head + r % SHARED) * step.chunks + id.workgroup.y;
    if (t < PAIRS) {
      var whole = vec2<f32>(0.0);
      for (var s = 0u; s < SPLITS; s++) {
        whole += parts[s * PAIRS + t];
      }
      sums[chunk * HEAD_DIM + 2u * t] = whole.x;
      sums[chunk * HEAD_DIM + 2u * t + 1u] = whole.y;
    }
    if (t == 0u) {
      stats[chunk] = vec2<f32>(row_max[r], row_sum[r]);
    }
  }
}
