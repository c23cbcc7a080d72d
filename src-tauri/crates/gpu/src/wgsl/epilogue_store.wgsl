// Epilogue: the results go to `y`, in rows of STRIDE values a token, or are added to it. The pairs are neighbouring rows
// of one matrix, or of three, stacked.
@group(0) @binding(#) var<storage, read_write> y: array<f32>;

#if THREE
#include stacked_rows
#else
fn load_first(pair: u32, g: u32) -> Packed {
  return load0(2u * pair, g);
}

fn load_second(pair: u32, g: u32) -> Packed {
  return load0(min(2u * pair + 1u, ROWS0 - 1u), g);
}

fn decode_first(p: Packed, pair: u32, g: u32) -> Group {
  return decode0(p, 2u * pair, g);
}

fn decode_second(p: Packed, pair: u32, g: u32) -> Group {
  return decode0(p, min(2u * pair + 1u, ROWS0 - 1u), g);
}
#endif

fn finish(id: Lane, t: u32, column: u32) {
  for (var i = t; i < PAIRS * COLUMNS; i += THREADS) {
    let pair = id.workgroup.x * PAIRS + i % PAIRS;
    let at = (column + i / PAIRS) * STRIDE + FIRST + 2u * pair;
    let sum = result(i);
    if (pair < ALL_PAIRS) {
#if ADD
      y[at] += sum.x;
#else
      y[at] = sum.x;
#endif
    }
    if (pair < ALL_PAIRS && 2u * pair + 1u < ALL_ROWS) {
#if ADD
      y[at + 1u] += sum.y;
#else
      y[at + 1u] = sum.y;
#endif
    }
  }
}
