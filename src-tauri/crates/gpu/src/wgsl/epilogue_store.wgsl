// The pairs are neighbouring rows of one matrix, or of three that stand one below the other; the sums go to
// `y`, a token's row of STRIDE values, or are added to what is there.
@group(0) @binding(#) var<storage, read_write> y: array<f32>;

#if THREE
fn first_of(pair: u32, g: u32) -> Group {
  return row_of(2u * pair, g);
}

fn second_of(pair: u32, g: u32) -> Group {
  return row_of(2u * pair + 1u, g);
}

fn row_of(row: u32, g: u32) -> Group {
  if (row < ROWS0) {
    return group0(row, g);
  }
  if (row < ROWS0 + ROWS1) {
    return group1(row - ROWS0, g);
  }
  return group2(row - ROWS0 - ROWS1, g);
}
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
