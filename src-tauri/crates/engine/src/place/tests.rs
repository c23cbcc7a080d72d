//! A GPU with little memory is used as far as it goes.

use std::path::Path;

use super::*;
use crate::faulty::{Fault, Faulty, device};
use crate::gguf::Gguf;

fn tiny() -> (Gguf, Config) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tiny-q4_k_m.gguf");
    let gguf = Gguf::open(&path).expect("the fixture is committed");
    let config = Config::from_gguf(&gguf).expect("a SmolLM3 file");
    let config = Config {
        context: 32_768,
        ..config
    };
    (gguf, config)
}

/// Where a model goes when the GPU has room for so many tokens in 16 bits beside its weights.
fn with_room_for(tokens: u64, context: Option<usize>) -> Option<Result<OnGpu, String>> {
    let (gguf, config) = tiny();
    let options = LoadOptions {
        context,
        ..LoadOptions::default()
    };
    let length = context.unwrap_or(config.context);
    let place = |exec| {
        let name = "Card".to_owned();
        on_gpu(exec, name, &config, &gguf, length, &options, &mut |_| {})
    };
    let roomy = Faulty::new(device()?, usize::MAX, Fault::Small(u64::MAX));
    let _weights = place(roomy.clone());
    let room = roomy.taken() + tokens * kv_bytes_per_token(&config, KvType::F16);
    Some(place(Faulty::new(
        device()?,
        usize::MAX,
        Fault::Small(room),
    )))
}

#[test]
fn a_gpu_with_little_memory_has_a_shorter_context_then_fewer_bits_then_no_model() {
    for (room, asked, expected) in [
        (40_000, None, Some((32_768, KvType::F16))),
        (20_000, None, Some((16_384, KvType::F16))),
        (4_500, None, Some((4_096, KvType::F16))),
        (3_000, None, Some((4_096, KvType::Q8_0))),
        (1_000, None, None),
        // A length that was asked for is kept.
        (20_000, Some(30_000), Some((30_000, KvType::Q8_0))),
        (10_000, Some(30_000), None),
    ] {
        let Some(found) = with_room_for(room, asked) else {
            return;
        };
        match (found, expected) {
            (Ok(found), Some(expected)) => {
                assert_eq!((found.context, found.kv), expected, "room for {room}");
                assert_eq!(found.without.is_some(), room != 40_000);
            }
            (Err(reason), None) => assert!(reason.contains("The CPU is used"), "{reason}"),
            (found, _) => panic!("room for {room}: {:?}", found.err()),
        }
    }
}

#[test]
fn a_gpu_too_small_for_the_weights_takes_no_model() {
    let Some(exec) = device() else { return };
    let (gguf, config) = tiny();
    let small = Faulty::new(exec, usize::MAX, Fault::Small(100_000));
    let (name, options) = ("Card".to_owned(), LoadOptions::default());
    let placed = on_gpu(small, name, &config, &gguf, 4096, &options, &mut |_| {});
    let reason = placed.err().unwrap_or_default();
    assert!(reason.contains("memory is full"), "{reason}");
}
