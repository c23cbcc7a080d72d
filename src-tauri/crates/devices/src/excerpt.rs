//! An excerpt of a model: a few layers, with every combination of storage types.

use engine::model::config::Config;
use engine::model::weights::{self, Tensor, WeightSource};

/// Most layers of an excerpt. The last has no rotary embedding, as in the whole model.
const MAX_LAYERS: usize = 4;

/// A model with some of the layers of another.
pub struct Excerpt<'a> {
    source: &'a dyn WeightSource,
    config: Config,
    /// The source layer of each layer.
    layers: Vec<usize>,
}

impl<'a> Excerpt<'a> {
    /// Makes an excerpt of the model in `source`. Layers with a new combination of storage types come first.
    pub fn new(source: &'a dyn WeightSource, config: &Config) -> Excerpt<'a> {
        let mut layer_types = Vec::new();
        let (mut layers, mut others) = (Vec::new(), Vec::new());
        for layer in 0..config.shape.layers {
            let types = weights::layer_types(source, config, layer);
            if layer_types.contains(&types) {
                others.push(layer);
            } else {
                layer_types.push(types);
                layers.push(layer);
            }
        }
        layers.extend(others);
        layers.truncate(MAX_LAYERS);
        let config = config.with_layers(layers.len());
        Excerpt {
            source,
            config,
            layers,
        }
    }

    /// Returns the dimensions of the excerpt.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the name of a tensor in the whole model.
    fn name(&self, name: &str) -> String {
        let parts = name
            .strip_prefix("blk.")
            .and_then(|rest| rest.split_once('.'));
        let layer = parts.and_then(|(layer, part)| {
            let layer = self.layers.get(layer.parse::<usize>().ok()?)?;
            Some(format!("blk.{layer}.{part}"))
        });
        layer.unwrap_or_else(|| name.to_owned())
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
