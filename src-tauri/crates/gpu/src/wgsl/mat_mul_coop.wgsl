// Weights times many tokens in cooperative matrices: a workgroup computes a tile of rows and tokens, 32 columns at a
// time, from halves in shared memory. Its first subgroups multiply; an invocation stages one row or one token, and loads
// the next group while the last is multiplied.
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

const ROWS = 2u * PAIRS;
const TOKENS = TOKEN_SUBGROUPS * TOKEN_EDGES * EDGE;
// Subgroups that multiply: each ROW_EDGES × TOKEN_EDGES matrices.
const MULTIPLIERS = ROW_SUBGROUPS * TOKEN_SUBGROUPS;
// Tokens of one call of the epilogue.
const COLUMNS = 16u;
// The type of an element of shared memory, the columns in it, and the stride of a row in elements: rows begin in
// different banks.
#if PAIRED
alias Element = vec2<f16>;
const PACKING = 2u;
#else
alias Element = f16;
const PACKING = 1u;
#endif
const LINE = 40u / PACKING;

// The rows, of which those of a pair are neighbours, then the tokens.
var<workgroup> halves: array<Element, (ROWS + TOKENS) * LINE>;
// [token][row]
var<workgroup> results: array<f32, ROWS * COLUMNS>;

// The results of a pair of rows: `at` is [token][pair].
fn result(at: u32) -> vec2<f32> {
  return vec2<f32>(results[2u * at], results[2u * at + 1u]);
}

fn pair_of(row: u32, first: u32) -> u32 {
  return min(first + row / 2u, ALL_PAIRS - 1u);
}

fn load_group(row: u32, first: u32, g: u32) -> Packed {
  if (row % 2u == 0u) {
    return load_first(pair_of(row, first), g);
  }
  return load_second(pair_of(row, first), g);
}

fn decode_group(p: Packed, row: u32, first: u32, g: u32) -> Group {
  if (row % 2u == 0u) {
    return decode_first(p, pair_of(row, first), g);
  }
  return decode_second(p, pair_of(row, first), g);
}

// Stores four values; `at` counts pairs.
fn store_four(at: u32, v: vec4<f32>) {
#if PAIRED
  halves[at] = vec2<f16>(v.xy);
  halves[at + 1u] = vec2<f16>(v.zw);
#else
  let four = vec4<f16>(v);
  halves[2u * at] = four.x;
  halves[2u * at + 1u] = four.y;
  halves[2u * at + 2u] = four.z;
  halves[2u * at + 3u] = four.w;
#endif
}

// Stores eight halves.
fn store_packed(at: u32, v: vec4<u32>) {
#if PAIRED
  halves[at] = vec2<f16>(unpack2x16float(v.x));
  halves[at + 1u] = vec2<f16>(unpack2x16float(v.y));
  halves[at + 2u] = vec2<f16>(unpack2x16float(v.z));
  halves[at + 3u] = vec2<f16>(unpack2x16float(v.w));
#else
  for (var i = 0u; i < 4u; i++) {
    let pair = vec2<f16>(unpack2x16float(v[i]));
    halves[2u * (at + i)] = pair.x;
    halves[2u * (at + i) + 1u] = pair.y;
  }
#endif
}

// Stores a group of a row of the weights.
fn store_row(line: u32, w: Group) {
  let values = weights_of(w);
#each I=8
  store_four(line * 20u + 2u * $Iu, values[$I] * HALF_RANGE);
#end
}

@compute @workgroup_size(THREADS)
fn main(id: Lane) {
  let t = thread(id);
  let first = id.workgroup.x * PAIRS;
  let token = id.workgroup.y * TOKENS;
  let own_row = (id.subgroup % ROW_SUBGROUPS) * ROW_EDGES * EDGE;
  let own_column = (id.subgroup / ROW_SUBGROUPS) * TOKEN_EDGES * EDGE;
#each I=ROW_EDGES J=TOKEN_EDGES
  var sum$I$J = Sums();
#end
  var next: Packed;
#each Q=4
  var copied$Q: vec4<u32>;
#end
  let is_row = t < ROWS;
  let is_token = !is_row && t < ROWS + TOKENS;
  let source = (token + t - ROWS) * GROUPS * 4u;
  if (is_row) {
    next = load_group(t, first, 0u);
  } else if (is_token) {
#each Q=4
    copied$Q = x_halves[source + $Qu];
#end
  }
  for (var g = 0u; g < GROUPS; g++) {
    workgroupBarrier();
    if (is_row) {
      store_row(t, decode_group(next, t, first, g));
    } else if (is_token) {
#each Q=4
      store_packed(t * 20u + 4u * $Qu, copied$Q);
#end
    }
    workgroupBarrier();
    let h = min(g + 1u, GROUPS - 1u);
    if (is_row) {
      next = load_group(t, first, h);
    } else if (is_token) {
      let at = source + h * 4u;
#each Q=4
      copied$Q = x_halves[at + $Qu];
#end
    }
    if (id.subgroup < MULTIPLIERS) {
      for (var k = 0u; k < 32u; k += EDGE) {
#each I=ROW_EDGES
        let rows$I = coopLoadT<Rows>(&halves[(own_row + $Iu * EDGE) * LINE + k / PACKING], LINE);
#end
#each J=TOKEN_EDGES
        let tokens$J = coopLoad<Tokens>(&halves[(ROWS + own_column + $Ju * EDGE) * LINE + k / PACKING], LINE);
#end
#each I=ROW_EDGES J=TOKEN_EDGES
        sum$I$J = coopMultiplyAdd(rows$I, tokens$J, sum$I$J);
#end
      }
    }
  }
  for (var part = 0u; part < TOKENS / COLUMNS; part++) {
    workgroupBarrier();
    if (id.subgroup < MULTIPLIERS) {
#each I=ROW_EDGES J=TOKEN_EDGES
      if ((own_column + $Ju * EDGE) / COLUMNS == part) {
        coopStore(sum$I$J, &results[(own_column + $Ju * EDGE) % COLUMNS * ROWS + own_row + $Iu * EDGE], ROWS);
      }
#end
    }
    workgroupBarrier();
    finish(id, t, token + part * COLUMNS);
  }
}
