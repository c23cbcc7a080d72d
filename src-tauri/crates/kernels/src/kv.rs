//! The keys and values of one layer, as the attention kernel wants them.

use half::f16;

/// How keys and values are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum KvType {
    /// Exact.
    F32,
    /// Half precision.
    #[default]
    F16,
    /// 8-bit integers, with an f16 scale for every 32 values.
    Q8_0,
}

impl KvType {
    /// The name as ggml writes it.
    pub fn name(self) -> &'static str {
        match self {
            KvType::F32 => "f32",
            KvType::F16 => "f16",
            KvType::Q8_0 => "q8_0",
        }
    }
}

/// Positions in a tile: keys of a tile lie position by position side by side, so that one vector
/// holds the same component of all of them and scores need no horizontal sums.
pub(crate) const TILE: usize = 16;

/// Positions that storage grows by.
const GROWTH: usize = 256;

/// Values that share a scale in [`KvType::Q8_0`].
const GROUP: usize = 32;

/// One layer's keys and values, position after position.
///
/// A position takes `kv_heads × head_dim` keys and as many values. Within a tile of 16 positions
/// of one head, keys are stored as `[head_dim][16]` and values as `[16][head_dim]`.
#[derive(Debug)]
pub struct KvLayer {
    ty: KvType,
    kv_heads: usize,
    head_dim: usize,
    len: usize,
    tiles: Vec<Tiles>,
}

/// The storage of `GROWTH` positions.
#[derive(Debug)]
struct Tiles {
    keys: Cells,
    values: Cells,
}

#[derive(Debug)]
enum Cells {
    F32(Box<[f32]>),
    F16(Box<[f16]>),
    Q8(Box<[i8]>, Box<[f16]>),
}

impl Cells {
    /// `cells` values that need `scales` scales if they are quantised.
    fn new(ty: KvType, cells: usize, scales: usize) -> Self {
        match ty {
            KvType::F32 => Cells::F32(vec![0.0; cells].into()),
            KvType::F16 => Cells::F16(vec![f16::ZERO; cells].into()),
            KvType::Q8_0 => Cells::Q8(vec![0; cells].into(), vec![f16::ZERO; scales].into()),
        }
    }

    /// Stores one position's `x`: value `i` at `at + i * stride`, scale `g` at `scale_at + g * scale_stride`.
    fn write(&mut self, x: &[f32], at: usize, stride: usize, scale_at: usize, scale_stride: usize) {
        match self {
            Cells::F32(cells) => {
                for (i, &v) in x.iter().enumerate() {
                    cells[at + i * stride] = v;
                }
            }
            Cells::F16(cells) => {
                for (i, &v) in x.iter().enumerate() {
                    cells[at + i * stride] = f16::from_f32(v);
                }
            }
            Cells::Q8(cells, scales) => {
                for (g, x) in x.chunks(GROUP).enumerate() {
                    let largest = x.iter().fold(0.0_f32, |a, v| a.max(v.abs()));
                    let scale = f16::from_f32(largest / 127.0);
                    scales[scale_at + g * scale_stride] = scale;
                    let inverse = if scale == f16::ZERO {
                        0.0
                    } else {
                        1.0 / scale.to_f32()
                    };
                    for (i, &v) in x.iter().enumerate() {
                        cells[at + (g * GROUP + i) * stride] = (v * inverse).round() as i8;
                    }
                }
            }
        }
    }

    /// Reads values `at..` as floats; value `i` has scale `scale_of(i)`.
    fn read(&self, at: usize, out: &mut [f32], scale_of: impl Fn(usize) -> usize) {
        let n = out.len();
        match self {
            Cells::F32(cells) => out.copy_from_slice(&cells[at..at + n]),
            Cells::F16(cells) => {
                for (o, c) in out.iter_mut().zip(&cells[at..at + n]) {
                    *o = c.to_f32();
                }
            }
            Cells::Q8(cells, scales) => {
                for (i, (o, &c)) in out.iter_mut().zip(&cells[at..at + n]).enumerate() {
                    *o = f32::from(c) * scales[scale_of(i)].to_f32();
                }
            }
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Cells::F32(cells) => size_of_val(&**cells),
            Cells::F16(cells) => size_of_val(&**cells),
            Cells::Q8(cells, scales) => size_of_val(&**cells) + size_of_val(&**scales),
        }
    }
}

impl KvLayer {
    /// An empty layer.
    pub fn new(ty: KvType, kv_heads: usize, head_dim: usize) -> Self {
        KvLayer {
            ty,
            kv_heads,
            head_dim,
            len: 0,
            tiles: Vec::new(),
        }
    }

    /// Positions held.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no position is held.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Heads of keys and of values.
    pub fn kv_heads(&self) -> usize {
        self.kv_heads
    }

    /// Components of a head.
    pub fn head_dim(&self) -> usize {
        self.head_dim
    }

    /// How the layer is stored.
    pub fn kv_type(&self) -> KvType {
        self.ty
    }

    /// Resident size in bytes.
    pub fn bytes(&self) -> usize {
        self.tiles
            .iter()
            .map(|t| t.keys.bytes() + t.values.bytes())
            .sum()
    }

    fn scales_per_head(&self) -> usize {
        self.head_dim.div_ceil(GROUP)
    }

    /// Appends `m` positions; `k` and `v` are `[m][kv_heads][head_dim]`.
    ///
    /// # Panics
    /// When the lengths are not those.
    pub fn append(&mut self, k: &[f32], v: &[f32], m: usize) {
        let (heads, dim, groups) = (self.kv_heads, self.head_dim, self.scales_per_head());
        assert!(
            k.len() == m * heads * dim && v.len() == k.len(),
            "keys and values of m positions"
        );
        while self.tiles.len() * GROWTH < self.len + m {
            let (cells, scales) = (GROWTH * heads * dim, GROWTH * heads * groups);
            self.tiles.push(Tiles {
                keys: Cells::new(self.ty, cells, scales),
                values: Cells::new(self.ty, cells, scales),
            });
        }
        for i in 0..m {
            let position = self.len + i;
            let tiles = &mut self.tiles[position / GROWTH];
            let (tile, lane) = (position % GROWTH / TILE, position % TILE);
            for head in 0..heads {
                let x = (i * heads + head) * dim..(i * heads + head + 1) * dim;
                let first = (head * GROWTH + tile * TILE) * dim;
                let scales = (head * GROWTH + tile * TILE) * groups;
                tiles
                    .keys
                    .write(&k[x.clone()], first + lane, TILE, scales + lane, TILE);
                tiles
                    .values
                    .write(&v[x], first + lane * dim, 1, scales + lane * groups, 1);
            }
        }
        self.len += m;
    }

    /// Forgets all positions from `len` on. Storage stays for the next ones.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// The keys of tile `t` of `head` as `[head_dim][16]`.
    pub(crate) fn read_keys(&self, head: usize, t: usize, out: &mut [f32]) {
        let (dim, groups) = (self.head_dim, self.scales_per_head());
        let (tiles, tile) = (&self.tiles[t * TILE / GROWTH], t % (GROWTH / TILE));
        let first = head * GROWTH + tile * TILE;
        tiles.keys.read(first * dim, &mut out[..dim * TILE], |i| {
            first * groups + i / TILE / GROUP * TILE + i % TILE
        });
    }

    /// The values of tile `t` of `head` as `[16][head_dim]`.
    pub(crate) fn read_values(&self, head: usize, t: usize, out: &mut [f32]) {
        let (dim, groups) = (self.head_dim, self.scales_per_head());
        let (tiles, tile) = (&self.tiles[t * TILE / GROWTH], t % (GROWTH / TILE));
        let first = head * GROWTH + tile * TILE;
        tiles.values.read(first * dim, &mut out[..dim * TILE], |i| {
            (first + i / dim) * groups + i % dim / GROUP
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended_is_read_back_within_the_types_precision() {
        for (ty, tolerance) in [
            (KvType::F32, 0.0),
            (KvType::F16, 1e-3),
            (KvType::Q8_0, 8e-3),
        ] {
            for dim in [16, 48, 128] {
                let mut layer = KvLayer::new(ty, 3, dim);
                let n = 300;
                let at = |p: usize, h: usize, d: usize| {
                    ((p * 7 + h * 13 + d * 3) % 199) as f32 / 100.0 - 1.0
                };
                let rows: Vec<f32> = (0..n)
                    .flat_map(|p| (0..3).flat_map(move |h| (0..dim).map(move |d| at(p, h, d))))
                    .collect();
                let negated: Vec<f32> = rows.iter().map(|v| -v).collect();
                layer.append(&rows[..5 * 3 * dim], &negated[..5 * 3 * dim], 5);
                layer.append(&rows[5 * 3 * dim..], &negated[5 * 3 * dim..], n - 5);
                assert_eq!(layer.len(), n);
                let (mut k, mut v) = (vec![0.0; dim * TILE], vec![0.0; dim * TILE]);
                for h in 0..3 {
                    for p in 0..n {
                        layer.read_keys(h, p / TILE, &mut k);
                        layer.read_values(h, p / TILE, &mut v);
                        for d in 0..dim {
                            let want = at(p, h, d);
                            assert!((k[d * TILE + p % TILE] - want).abs() <= tolerance);
                            assert!((v[p % TILE * dim + d] + want).abs() <= tolerance);
                        }
                    }
                }
                layer.truncate(4);
                assert_eq!(layer.len(), 4);
            }
        }
    }
}
