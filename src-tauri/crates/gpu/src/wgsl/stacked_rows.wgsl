// The pairs are neighbouring rows of three matrices, stacked.
fn load_row(row: u32, g: u32) -> Packed {
  if (row < ROWS0) {
    return load0(row, g);
  }
  if (row < ROWS0 + ROWS1) {
    return load1(row - ROWS0, g);
  }
  return load2(row - ROWS0 - ROWS1, g);
}

fn decode_row(p: Packed, row: u32, g: u32) -> Group {
  if (row < ROWS0) {
    return decode0(p, row, g);
  }
  if (row < ROWS0 + ROWS1) {
    return decode1(p, row - ROWS0, g);
  }
  return decode2(p, row - ROWS0 - ROWS1, g);
}

fn load_first(pair: u32, g: u32) -> Packed {
  return load_row(2u * pair, g);
}

fn load_second(pair: u32, g: u32) -> Packed {
  return load_row(2u * pair + 1u, g);
}

fn decode_first(p: Packed, pair: u32, g: u32) -> Group {
  return decode_row(p, 2u * pair, g);
}

fn decode_second(p: Packed, pair: u32, g: u32) -> Group {
  return decode_row(p, 2u * pair + 1u, g);
}
