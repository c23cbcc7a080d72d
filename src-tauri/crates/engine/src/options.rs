//! Options of loading a model, and its device.

use kernels::{CpuLevel, KvType};

/// The device of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// The CPU.
    #[default]
    Cpu,
    /// A GPU; layers that do not fit run on the CPU.
    Gpu(GpuPlacement),
}

/// Choice of a GPU, and its use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuPlacement {
    /// Its UUID or PCI address; `None` for the first usable one.
    pub id: Option<String>,
    /// True if software Vulkan counts as a GPU.
    pub software: bool,
    /// True to use its cooperative matrices, if it has them.
    pub matrices: bool,
    /// Minimum number of layers on it; if fewer fit, it is not used.
    pub min_layers: usize,
}

/// Options of loading a model.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Its device.
    pub placement: Placement,
    /// CPU threads; `None` for one per physical core.
    pub threads: Option<usize>,
    /// Length of the context in tokens; `None` for the trained one, as far as memory allows.
    pub context: Option<usize>,
    /// True if YaRN may extend the context beyond the trained one.
    pub allow_yarn: bool,
    /// Storage type of keys and values.
    pub kv: KvType,
    /// All arithmetic in f32: slow, a reference for the fast kernels.
    pub exact: bool,
    /// The CPU's instruction set level; `None` for that of `GOLDCREST_CPU`, else the best one.
    pub cpu_level: Option<CpuLevel>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions {
            placement: Placement::Cpu,
            threads: None,
            context: None,
            allow_yarn: true,
            kv: KvType::F16,
            exact: false,
            cpu_level: None,
        }
    }
}
