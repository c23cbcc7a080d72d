//! Rearrangements of 64 bytes in arrays, for the scalar level and for levels without an instruction.

/// Lanes of a vector.
pub(crate) const LANES: usize = 16;

/// 16 bytes each of 16 rows that begin `stride` bytes apart: lane r of vector i holds bytes
/// 4i..4i + 4 of row r.
///
/// # Safety
/// Each row is readable for 16 bytes.
#[inline(always)]
pub(super) unsafe fn load_quads(p: *const u8, stride: usize) -> [[u8; 4 * LANES]; 4] {
    let mut quads = [[0; 4 * LANES]; 4];
    for r in 0..LANES {
        // SAFETY: row r begins `r * stride` bytes after `p` and has 16 bytes; an unaligned read needs no more.
        let row = unsafe { p.add(r * stride).cast::<[[u8; 4]; 4]>().read_unaligned() };
        for (quads, quad) in quads.iter_mut().zip(row) {
            quads.as_chunks_mut().0[r] = quad;
        }
    }
    quads
}

/// The low halves of all lanes, then the high halves.
#[inline(always)]
pub(super) fn unzip_halves(w: &[u8; 4 * LANES]) -> [u8; 4 * LANES] {
    std::array::from_fn(|i| w[i % 32 / 2 * 4 + i / 32 * 2 + i % 2])
}

/// The lowest bytes of all lanes, then the next, the next and the highest.
#[inline(always)]
pub(super) fn unzip_bytes(w: &[u8; 4 * LANES]) -> [u8; 4 * LANES] {
    std::array::from_fn(|i| w[i % LANES * 4 + i / LANES])
}
