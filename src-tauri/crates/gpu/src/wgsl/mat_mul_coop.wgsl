// Weights times many tokens in cooperative matrices: a workgroup computes 64 rows for 64 tokens, 32 columns at a
// time, from halves that it has unpacked into shared memory. The first four subgroups have 32 rows and 32 tokens each.
// naga 30 declares Vulkan's memory model for such a kernel without marking shared memory as non-private; known drivers
// rely on the barriers, and the check in a child process finds one that does not.
enable f16;
enable wgpu_cooperative_matrix;
// Control flow is uniform in each subgroup, as cooperative matrices require.
diagnostic(off, derivative_uniformity);
#include invocation
#include activations X=x ACCESS=read
#weights
#include $EPILOGUE

#if EDGE_8
const EDGE = 8u;
alias Rows = coop_mat8x8<f16, A>;
alias Tokens = coop_mat8x8<f16, B>;
alias Sums = coop_mat8x8<f32, C>;
#else
const EDGE = 16u;
alias Rows = coop_mat16x16<f16, A>;
alias Tokens = coop_mat16x16<f16, B>;
alias Sums = coop_mat16x16<f32, C>;
#endif

const TOKENS = 64u;
// Tokens of one call of the epilogue: 16 of each half of the subgroups.
const COLUMNS = 32u;
// The type of an element of shared memory, the columns in it, and the stride of a row in elements: rows begin in
// different banks.
#if PAIRED
alias Packed = vec2<f16>;
const PACKING = 2u;
#else
alias Packed = f16;
const PACKING = 1u;
#endif
const LINE = 40u / PACKING;
// Weights are multiplied and activations divided by it, to stay in the range of f16: activations behind SwiGLU may be
// larger, and weights are small.
const RANGE_SCALE = 64.0;

// 64 rows, of which those of a pair are neighbours, then 64 tokens.
var<workgroup> halves: array<Packed, 128u * LINE>;
// [token][row]
var<workgroup> results: array<f32, 64u * COLUMNS>;

// The results of a pair of rows: `at` is [token][pair].
fn result(at: u32) -> vec2<f32> {
  return vec2<f32>(results[2u * at], results[2u * at + 1u]);
}

// Stores columns 4q.. of a row or, behind the rows, of a token.
fn store_four(line: u32, q: u32, v: vec4<f32>) {
  let four = vec4<f16>(v);
  let at = line * LINE + 4u / PACKING * q;
#if PAIRED
  halves[at] = four.xy;
  halves[at + 1u] = four.zw;
#else
  halves[at] = four.x;
  halves[at + 1u] = four.y;
  halves[at + 2u] = four.z;
  halves[at + 3u] = four.w;
#endif
}

fn row_group(row: u32, first: u32, g: u32) -> Group {
  let pair = min(first + row / 2u, ALL_PAIRS - 1u);
  if (row % 2u == 0u) {
    return first_of(pair, g);
  }
  return second_of(pair, g);
}

// Four of a group of activations.
fn activation(at: u32, i: u32) -> vec4<f32> {
#if x_DOT4
  let bytes = x_bytes[at * 2u + i / 4u][i % 4u];
  return x_scales[at][i / 4u] * vec4<f32>(unpack4xI8(bytes));
#else
  return x_floats[at * 8u + i];
#endif
}

// The slot of a token of the tile: each half of the subgroups has 16 of the first 32, which go to the epilogue first.
fn slot(token: u32) -> u32 {
  return token % 16u + (token / 32u) * 16u + ((token / 16u) % 2u) * 32u;
}

@compute @workgroup_size(THREADS)
fn main(id: Lane) {
  let t = thread(id);
  let first = id.workgroup.x * PAIRS;
  let token = id.workgroup.y * TOKENS;
  let own_row = (id.subgroup % 2u) * 32u;
  let own_half = (id.subgroup / 2u) % 2u;
  let own_token = 64u + own_half * 32u;
#each I J
  var sum$I$J = Sums();
#end
  for (var g = 0u; g < GROUPS; g++) {
    workgroupBarrier();
    for (var i = t; i < 128u; i += THREADS) {
      if (i < 64u) {
        var v = weights_of(row_group(i, first, g));
        for (var q = 0u; q < 8u; q++) {
          store_four(i, q, v[q] * RANGE_SCALE);
        }
      } else {
        let c = i - 64u;
        let at = (token + c) * GROUPS + g;
        for (var q = 0u; q < 8u; q++) {
          store_four(64u + slot(c), q, activation(at, q) / RANGE_SCALE);
        }
      }
    }
    workgroupBarrier();
    if (id.subgroup < 4u) {
      for (var k = 0u; k < 32u; k += EDGE) {
#each I
        let rows$I = coopLoadT<Rows>(&halves[(own_row + $Iu * EDGE) * LINE + k / PACKING], LINE);
        let tokens$I = coopLoad<Tokens>(&halves[(own_token + $Iu * EDGE) * LINE + k / PACKING], LINE);
#end
#each I J
        sum$I$J = coopMultiplyAdd(rows$I, tokens$J, sum$I$J);
#end
      }
    }
  }
  for (var part = 0u; part < TOKENS / COLUMNS; part++) {
    workgroupBarrier();
    if (id.subgroup < 4u) {
#each I J
      if ($Ju * EDGE / 16u == part) {
        coopStore(sum$I$J, &results[(own_half * 16u + $Ju * EDGE % 16u) * 64u + own_row + $Iu * EDGE], 64u);
      }
#end
    }
    workgroupBarrier();
    finish(id, t, token + part * COLUMNS);
  }
}
