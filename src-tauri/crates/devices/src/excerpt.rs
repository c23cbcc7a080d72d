//! A few layers of a model, of every kind that it has: enough to find out what a device can do.

use engine::model::config::Config;
use engine::model::weights::{self, Tensor, WeightSource};

/// Blocks of an excerpt, at most. The last has no rotary embedding, as in the whole.
const BLOCKS: usize = 4;

/// A model with some of the blocks of another.
pub struct Excerpt<'a> {
    source: &'a dyn WeightSource,
    config: Config,
    /// The block that stands for each.
    blocks: Vec<usize>,
}

impl<'a> Excerpt<'a> {
    /// Of the model that `source` holds. Blocks whose tensors are stored otherwise than those before come first.
    pub fn new(source: &'a dyn WeightSource, config: &Config) -> Excerpt<'a> {
        let mut kinds = Vec::new();
        let (mut blocks, mut others) = (Vec::new(), Vec::new());
        for block in 0..config.shape.layers {
            let kind = weights::types(source, config, block);
            if kinds.contains(&kind) {
                others.push(block);
            } else {
                kinds.push(kind);
                blocks.push(block);
            }
        }
        blocks.extend(others);
        blocks.truncate(BLOCKS);
        let config = config.with_layers(blocks.len());
        Excerpt {
            source,
            config,
            blocks,
        }
    }

    /// Its dimensions.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// A tensor's name in the whole model.
    fn name(&self, name: &str) -> String {
        let parts = name
            .strip_prefix("blk.")
            .and_then(|rest| rest.split_once('.'));
        let block = parts.and_then(|(block, part)| {
            let block = self.blocks.get(block.parse::<usize>().ok()?)?;
            Some(format!("blk.{block}.{part}"))
        });
        block.unwrap_or_else(|| name.to_owned())
    }
}

impl WeightSource for Excerpt<'_> {
    fn shape(&self, name: &str) -> Option<(kernels::BlockType, usize, usize)> {
        self.source.shape(&self.name(name))
    }

    fn tensor(&self, name: &str) -> Option<Tensor<'_>> {
        self.source.tensor(&self.name(name))
    }
}
