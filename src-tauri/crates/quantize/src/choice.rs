//! Type of each tensor: llama.cpp's choice for these architectures (`llama-quant.cpp`, without an importance matrix).

use std::fmt;
use std::str::FromStr;

use kernels::BlockType;
use serde::Serialize;

/// A file's mix of types, by llama.cpp's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum FileType {
    /// Q4_K, with Q6_K for the most important tensors.
    #[serde(rename = "Q4_K_M")]
    Q4KM,
    /// Q5_K, with Q6_K for the most important tensors.
    #[serde(rename = "Q5_K_M")]
    Q5KM,
    /// Q6_K throughout.
    #[serde(rename = "Q6_K")]
    Q6K,
    /// Q8_0 throughout.
    Q8_0,
    /// Half precision.
    F16,
}

/// No file type has this name.
#[derive(Debug, thiserror::Error)]
#[error("must be Q4_K_M, Q5_K_M, Q6_K, Q8_0 or F16")]
pub struct UnknownFileType;

impl FileType {
    /// All file types, the smallest first.
    pub const ALL: [FileType; 5] = [
        FileType::Q4KM,
        FileType::Q5KM,
        FileType::Q6K,
        FileType::Q8_0,
        FileType::F16,
    ];

    /// Returns llama.cpp's name.
    pub fn name(self) -> &'static str {
        match self {
            FileType::Q4KM => "Q4_K_M",
            FileType::Q5KM => "Q5_K_M",
            FileType::Q6K => "Q6_K",
            FileType::Q8_0 => "Q8_0",
            FileType::F16 => "F16",
        }
    }

    /// Returns the number under `general.file_type`.
    pub fn id(self) -> u32 {
        match self {
            FileType::F16 => 1,
            FileType::Q8_0 => 7,
            FileType::Q4KM => 15,
            FileType::Q5KM => 17,
            FileType::Q6K => 18,
        }
    }

    /// Returns the type of most matrices.
    fn plain(self) -> BlockType {
        match self {
            FileType::Q4KM => BlockType::Q4K,
            FileType::Q5KM => BlockType::Q5K,
            FileType::Q6K => BlockType::Q6K,
            FileType::Q8_0 => BlockType::Q8_0,
            FileType::F16 => BlockType::F16,
        }
    }

    /// Returns the type of a matrix with rows of `cols` values, in a model of `layers` blocks whose head is `tied` to
    /// the embedding or not.
    pub fn of_matrix(self, name: &str, cols: usize, layers: usize, tied: bool) -> BlockType {
        let plain = self.plain();
        if plain == BlockType::F16 {
            return plain;
        }
        let is_head = name == "output.weight" || (tied && name == "token_embd.weight");
        let more_bits = matches!(self, FileType::Q4KM | FileType::Q5KM)
            && (name.ends_with("attn_v.weight") || name.ends_with("ffn_down.weight"))
            && layer(name).is_some_and(|layer| use_more_bits(layer, layers));
        let wanted = match plain {
            BlockType::Q8_0 => BlockType::Q8_0,
            // The head gets this type instead of the fallback of its own.
            _ if is_head && !cols.is_multiple_of(plain.block_len()) => BlockType::Q8_0,
            _ if is_head || more_bits => BlockType::Q6K,
            plain => plain,
        };
        fallback(wanted, cols)
    }
}

impl fmt::Display for FileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FileType {
    type Err = UnknownFileType;

    fn from_str(text: &str) -> Result<FileType, UnknownFileType> {
        FileType::ALL
            .into_iter()
            .find(|file_type| file_type.name().eq_ignore_ascii_case(text))
            .ok_or(UnknownFileType)
    }
}

/// Returns the type for rows whose length is not a multiple of the block.
fn fallback(ty: BlockType, cols: usize) -> BlockType {
    let fits = |ty: BlockType| cols.is_multiple_of(ty.block_len());
    let other = match ty {
        ty if fits(ty) => ty,
        BlockType::Q4K => BlockType::Q5_0,
        BlockType::Q5K => BlockType::Q5_1,
        _ => BlockType::Q8_0,
    };
    if fits(other) { other } else { BlockType::F16 }
}

/// Returns the layer that a tensor belongs to.
fn layer(name: &str) -> Option<usize> {
    name.strip_prefix("blk.")?.split('.').next()?.parse().ok()
}

/// Returns whether a layer is among the most important: the first and the last eighth, and every third between.
fn use_more_bits(layer: usize, layers: usize) -> bool {
    let eighth = layers / 8;
    layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_either_case() {
        for file_type in FileType::ALL {
            assert_eq!(file_type.name().parse::<FileType>().ok(), Some(file_type));
            let small = file_type.name().to_lowercase();
            assert_eq!(small.parse::<FileType>().ok(), Some(file_type));
        }
        assert!("Q4_K_S".parse::<FileType>().is_err());
    }

    #[test]
    fn the_3b_gets_the_mix_that_its_published_file_has() {
        let ty = |name: &str, cols| FileType::Q4KM.of_matrix(name, cols, 36, true);
        assert_eq!(ty("token_embd.weight", 2048), BlockType::Q6K);
        assert_eq!(ty("blk.0.attn_q.weight", 2048), BlockType::Q4K);
        let more: Vec<usize> = (0..36)
            .filter(|layer| ty(&format!("blk.{layer}.ffn_down.weight"), 11008) == BlockType::Q6K)
            .collect();
        assert_eq!(
            more,
            [
                0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30, 31, 32, 33, 34, 35
            ]
        );
    }

    #[test]
    fn rows_that_are_no_whole_blocks_get_other_types() {
        let of = |file_type: FileType, name: &str, cols| file_type.of_matrix(name, cols, 5, true);
        let q = "blk.0.attn_q.weight";
        assert_eq!(of(FileType::Q4KM, q, 320), BlockType::Q5_0);
        assert_eq!(of(FileType::Q5KM, q, 320), BlockType::Q5_1);
        assert_eq!(of(FileType::Q6K, q, 320), BlockType::Q8_0);
        assert_eq!(
            of(FileType::Q4KM, "token_embd.weight", 320),
            BlockType::Q8_0
        );
        assert_eq!(
            of(FileType::Q4KM, "blk.4.attn_v.weight", 320),
            BlockType::Q8_0
        );
        for file_type in FileType::ALL {
            assert_eq!(of(file_type, q, 40), BlockType::F16);
        }
    }
}
