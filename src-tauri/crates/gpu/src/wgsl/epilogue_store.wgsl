// Epilogue: the results go to `y`, in rows of STRIDE values a token, or are added to it. The pairs are neighbouring rows
// of one matrix, or of three, stacked.
@group(0) @binding(#) var<storage, read_write> y: array<f32>;

#if THREE
#include stacked_rows
#else
fn first_of(pair: u32, g: u32) -> Group {
  return group0(2u * pair, g);
}

fn second_of(pair: u32, g: u32) -> Group {
  return group0(min(2u * pair + 1u, ROWS0 - 1u), g);
}
#endif

fn finish(id: Lane, t: u32, column: u32) {
  for (var i = t; i < PAIRS * COLUMNS; i += THREADS) {
    let pair = id.workgroup.x * PAIRS + i % PAIRS;
    let at = (column + i / PAIRS) * STRIDE + FIRST + 2u * pair;
    if (pair < ALL_PAIRS) {
#if ADD
      y[at] += result(i).x;
#else
      y[at] = result(i).x;
#endif
    }
    if (pair < ALL_PAIRS && 2u * pair + 1u < ALL_ROWS) {
#if ADD
      y[at + 1u] += result(i).y;
#else
      y[at + 1u] = result(i).y;
#endif
    }
  }
}
