//! Every block type against the values that the `gguf` Python package reads from the same bytes.
//!
//! `blocks.bin` holds, per type: its ggml number and byte count (u32 each), the bytes of 256 random
//! values, and the 256 floats.

use kernels::{BlockType, dequantise};

fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(b[at..at + 4].try_into().expect("four bytes"))
}

#[test]
fn blocks_mean_what_ggml_means() {
    let mut rest: &[u8] = include_bytes!("blocks.bin");
    let mut seen = Vec::new();
    while !rest.is_empty() {
        let ty = BlockType::from_ggml(u32_at(rest, 0)).expect("a type of ours");
        let (bytes, after) = rest[8..].split_at(u32_at(rest, 4) as usize);
        let (wanted, after) = after.split_at(1024);
        let mut got = [0.0; 256];
        dequantise(ty, bytes, &mut got).expect("whole blocks");
        for (i, got) in got.iter().enumerate() {
            let want = f32::from_bits(u32_at(wanted, i * 4));
            assert!(
                (got - want).abs() <= want.abs() * 1e-6,
                "{} [{i}]: {got} is not {want}",
                ty.name()
            );
        }
        seen.push(ty);
        rest = after;
    }
    assert!(
        BlockType::ALL.iter().all(|ty| seen.contains(ty)),
        "the fixture has every type"
    );
}

#[test]
fn wrong_lengths_are_errors() {
    for ty in BlockType::ALL {
        let n = ty.block_len() * 2;
        let bytes = vec![0; ty.row_bytes(n).expect("whole blocks")];
        let mut out = vec![0.0; n];
        assert!(dequantise(ty, &bytes, &mut out).is_ok());
        assert!(dequantise(ty, &bytes[1..], &mut out).is_err());
        assert!(dequantise(ty, &bytes, &mut out[1..]).is_err());
        assert_eq!(BlockType::from_ggml(ty.ggml_id()), Some(ty));
    }
}
