//! Keys and values as they are stored, encoded and shared.

use super::*;

/// Pseudo-random numbers, with groups of small numbers and groups of zeros.
fn numbers(n: usize) -> Vec<f32> {
    (0..n)
        .map(|i| {
            let bits = (i as u32).wrapping_add(7).wrapping_mul(0x9e37_79b9);
            let bits = (bits ^ bits >> 15).wrapping_mul(0x85eb_ca6b);
            let size = [3.0, 0.01, 0.0, 40.0][i / KV_SCALE_GROUP % 4];
            size * ((bits >> 8) as f32 / (1 << 23) as f32 - 1.0)
        })
        .collect()
}

/// Integers and scale of a group, rounded to nearest in plain arithmetic.
fn rounded(x: &[f32]) -> (Vec<i8>, f16) {
    let largest = x
        .iter()
        .fold(0.0_f64, |largest, &v| largest.max(f64::from(v).abs()));
    let scale = f16::from_f64(largest / 127.0);
    let nearest = |&v: &f32| match scale.to_f64() {
        0.0 => 0,
        scale => (f64::from(v) / scale).round() as i8,
    };
    (x.iter().map(nearest).collect(), scale)
}

#[test]
fn eight_bits_are_the_nearest_bit_for_bit() {
    const DIM: usize = 80;
    let groups = DIM.div_ceil(KV_SCALE_GROUP);
    let (heads, m) = (2, 37);
    let (k, v) = (numbers(m * heads * DIM), numbers(2 * m * heads * DIM));
    let v = &v[m * heads * DIM..];
    let mut layer = KvLayer::new(KvType::Q8_0, heads, DIM);
    layer.append(&k, v, m);
    for position in 0..m {
        let (tile, lane) = (position / KV_TILE, position % KV_TILE);
        for head in 0..heads {
            let x = (position * heads + head) * DIM;
            let (KvTile::Q8(keys, key_scales), KvTile::Q8(values, value_scales)) = (
                layer.keys(head, tile..tile + 1),
                layer.values(head, tile..tile + 1),
            ) else {
                panic!("8 bits");
            };
            for g in 0..groups {
                let part = g * KV_SCALE_GROUP..((g + 1) * KV_SCALE_GROUP).min(DIM);
                let (want, scale) = rounded(&k[x..x + DIM][part.clone()]);
                assert_eq!(key_scales[g * KV_TILE + lane], scale);
                let found: Vec<i8> = part.clone().map(|i| keys[i * KV_TILE + lane]).collect();
                assert_eq!(found, want, "key {position} of head {head}, group {g}");
                let (want, scale) = rounded(&v[x..x + DIM][part.clone()]);
                assert_eq!(value_scales[lane * groups + g], scale);
                let found = &values[lane * layer.value_dim()..][part];
                assert_eq!(found, want, "value {position} of head {head}, group {g}");
            }
        }
    }
}

#[test]
fn half_precision_is_the_nearest_half() {
    const DIM: usize = 20;
    let k = numbers(3 * DIM);
    let mut layer = KvLayer::new(KvType::F16, 1, DIM);
    layer.append(&k, &k, 3);
    let (KvTile::F16(keys), KvTile::F16(values)) = (layer.keys(0, 0..1), layer.values(0, 0..1))
    else {
        panic!("half precision");
    };
    for (at, x) in k.iter().enumerate() {
        let (position, i) = (at / DIM, at % DIM);
        assert_eq!(keys[i * KV_TILE + position], f16::from_f32(*x));
        assert_eq!(values[position * layer.value_dim() + i], f16::from_f32(*x));
    }
}

/// Keys and values that attention would read of the first `len` positions.
fn stored(layer: &KvLayer) -> Vec<String> {
    let tiles = |segment: usize| {
        let first = segment * KV_SEGMENT;
        let count = (layer.len() - first).min(KV_SEGMENT).div_ceil(KV_TILE);
        first / KV_TILE..first / KV_TILE + count
    };
    let segments = layer.len().div_ceil(KV_SEGMENT);
    let cells = |tile: KvTile<'_>| match tile {
        KvTile::F32(x) => format!("{x:?}"),
        KvTile::F16(x) => format!("{x:?}"),
        KvTile::Q8(x, scales) => format!("{x:?} {scales:?}"),
    };
    (0..segments)
        .flat_map(|segment| (0..layer.kv_heads()).map(move |head| (segment, head)))
        .flat_map(|(segment, head)| {
            let tiles = tiles(segment);
            [
                cells(layer.keys(head, tiles.clone())),
                cells(layer.values(head, tiles)),
            ]
        })
        .collect()
}

fn filled_layer(ty: KvType, positions: usize) -> KvLayer {
    let mut layer = KvLayer::new(ty, 2, 20);
    let x = numbers(2 * positions * 40);
    layer.append(&x[..positions * 40], &x[positions * 40..], positions);
    layer
}

#[test]
fn an_encoded_segment_is_restored_bit_for_bit() {
    for ty in [KvType::F32, KvType::F16, KvType::Q8_0] {
        let layer = filled_layer(ty, 2 * KV_SEGMENT);
        let mut restored = KvLayer::new(ty, 2, 20);
        // Storage left by a longer sequence.
        restored.append(&numbers(40 * 600), &numbers(40 * 600), 600);
        restored.truncate(0);
        for segment in 0..2 {
            let mut bytes = Vec::new();
            layer.encode_segment(segment, &mut bytes);
            assert_eq!(bytes.len(), layer.segment_bytes());
            restored.append_segment(&bytes).expect("memory");
        }
        assert_eq!(stored(&restored), stored(&layer), "{}", ty.name());
    }
}

#[test]
fn a_clone_shares_storage_until_one_of_the_two_is_written_to() {
    for ty in [KvType::F32, KvType::F16, KvType::Q8_0] {
        let layer = filled_layer(ty, KV_SEGMENT + 40);
        let before = stored(&layer);
        for len in [KV_SEGMENT + 40, KV_SEGMENT + 35, KV_SEGMENT, 17] {
            let mut clone = layer.clone();
            clone.truncate(len);
            let more = numbers(40 * 50);
            clone.reserve(50).expect("memory");
            clone.append(&more, &more, 50);
            assert_eq!(stored(&layer), before, "{} from {len}", ty.name());
            // Equal to an unshared layer with the same positions.
            let mut alone = filled_layer(ty, KV_SEGMENT + 40);
            alone.truncate(len);
            alone.append(&more, &more, 50);
            let mut apart = layer.prefix(len);
            apart.append(&more, &more, 50);
            assert_eq!(stored(&clone), stored(&alone), "{} from {len}", ty.name());
            assert_eq!(stored(&apart), stored(&alone), "{} from {len}", ty.name());
        }
    }
}

#[test]
fn bytes_are_predicted() {
    for ty in [KvType::F32, KvType::F16, KvType::Q8_0] {
        for (heads, dim) in [(1, 16), (2, 20), (4, 128), (3, 80)] {
            for positions in [1, KV_SEGMENT, KV_SEGMENT + 1] {
                let mut layer = KvLayer::new(ty, heads, dim);
                let x = numbers(positions * heads * dim);
                layer.append(&x, &x, positions);
                let predicted = KvLayer::bytes_for(ty, heads, dim, positions);
                assert_eq!(
                    layer.bytes() as u64,
                    predicted,
                    "{} {heads} × {dim}",
                    ty.name()
                );
            }
        }
    }
}

#[test]
fn a_cache_that_no_memory_holds_is_an_error() {
    let mut layer = KvLayer::new(KvType::F32, 1 << 30, 512);
    assert!(layer.reserve(1).is_err());
    assert_eq!((layer.len(), layer.bytes()), (0, 0));
}
