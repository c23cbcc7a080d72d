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

/// The table of IQ4_NL and IQ4_XS, in the order of the nibbles.
const IQ4: [f32; 16] = [
    -127., -104., -83., -65., -49., -35., -22., -10., 1., 13., 25., 38., 53., 69., 89., 113.,
];

/// The first 32 values of a block as nibbles: value `i` is index `i % 16`.
fn nibbles() -> [u8; 16] {
    std::array::from_fn(|i| (i | i << 4) as u8)
}

#[test]
fn iq4_nl_is_a_scale_times_the_table() {
    let mut block = 0x3800_u16.to_le_bytes().to_vec(); // 0.5
    block.extend(nibbles());
    let mut got = [0.0; 32];
    dequantise(BlockType::IQ4NL, &block, &mut got).expect("a block");
    for (i, got) in got.iter().enumerate() {
        assert_eq!(*got, 0.5 * IQ4[i % 16], "{i}");
    }
}

#[test]
fn iq4_xs_has_every_sub_scale() {
    for scale in 0..64_u8 {
        for group in 0..8 {
            // All other sub-scales are 32, which stands for zero.
            let (mut low, mut high) = ([0_u8; 4], 0xaaaa_u16);
            low[group / 2] = (scale & 15) << (group % 2 * 4);
            high &= !(3 << (group * 2));
            high |= u16::from(scale >> 4) << (group * 2);
            let mut block = 0xb400_u16.to_le_bytes().to_vec(); // -0.25
            block.extend(high.to_le_bytes());
            block.extend(low);
            (0..8).for_each(|_| block.extend(nibbles()));
            let mut got = [f32::NAN; 256];
            dequantise(BlockType::IQ4XS, &block, &mut got).expect("a block");
            for (i, got) in got.iter().enumerate() {
                let scale = if i / 32 == group {
                    f32::from(scale) - 32.0
                } else {
                    0.0
                };
                assert_eq!(*got, -0.25 * scale * IQ4[i % 16], "{i}");
            }
        }
    }
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
