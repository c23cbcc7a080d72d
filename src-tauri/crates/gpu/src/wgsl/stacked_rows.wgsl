// The pairs are neighbouring rows of three matrices, stacked.
fn row_of(row: u32, g: u32) -> Group {
  if (row < ROWS0) {
    return group0(row, g);
  }
  if (row < ROWS0 + ROWS1) {
    return group1(row - ROWS0, g);
  }
  return group2(row - ROWS0 - ROWS1, g);
}

fn first_of(pair: u32, g: u32) -> Group {
  return row_of(2u * pair, g);
}

fn second_of(pair: u32, g: u32) -> Group {
  return row_of(2u * pair + 1u, g);
}
