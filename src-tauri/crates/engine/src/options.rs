//! How a model is to be loaded, and on which device.

use std::sync::Arc;

use kernels::{CpuLevel, KvType};

use crate::text::template::TemplateSandbox;

/// Where a model is to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// On the CPU.
    #[default]
    Cpu,
    /// On a GPU, and on the CPU with the first layers where the GPU has no room for all.
    Gpu(GpuPlacement),
}

/// On which GPU, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuPlacement {
    /// Its UUID or its address on the bus; `None` for the first that may be used.
    pub id: Option<String>,
    /// Whether software Vulkan counts as a GPU.
    pub software: bool,
    /// Whether to use its cooperative matrices, where it has them.
    pub matrices: bool,
    /// The fewest layers on it; with room for fewer it is not used.
    pub min_layers: usize,
}

/// How a model is to be loaded.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Where it is to run.
    pub placement: Placement,
    /// CPU threads; `None` for one per physical core.
    pub threads: Option<usize>,
    /// Length of the context in tokens; `None` for what the model was trained for, as far as memory allows.
    pub context: Option<usize>,
    /// Whether YaRN may stretch the context beyond what the model was trained for.
    pub stretch: bool,
    /// How keys and values are kept.
    pub kv: KvType,
    /// All arithmetic in f32: slow, for measuring the fidelity of the fast way.
    pub exact: bool,
    /// The CPU's instruction set level; `None` for what `GOLDCREST_CPU` asks for, else the best there is.
    pub cpu_level: Option<CpuLevel>,
    /// Where the file's chat template runs if its text is unknown; without, the built-in SmolLM3 protocol is used then.
    pub sandbox: Option<Arc<dyn TemplateSandbox>>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions {
            placement: Placement::Cpu,
            threads: None,
            context: None,
            stretch: true,
            kv: KvType::F16,
            exact: false,
            cpu_level: None,
            sandbox: None,
        }
    }
}
