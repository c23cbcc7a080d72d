//! The GPUs of this machine, and which of them may be used.

use std::fmt;

use wgpu::{
    Adapter, Backend, Backends, CooperativeMatrixProperties, CooperativeScalarType, DeviceType,
    Features, Instance, InstanceDescriptor, MemoryBudgetThresholds,
};

use super::uuid;
use crate::error::GpuError;
use crate::exec::executor::CoopMatrices;
use crate::plan::specialize::SHARERS;

/// What a device is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GpuKind {
    /// A card with memory of its own.
    Discrete,
    /// A part of the processor, sharing its memory.
    Integrated,
    /// Part of a virtual machine.
    Virtual,
    /// The processor, playing a GPU.
    Software,
    /// Something else.
    Other,
}

/// What a device may be, and do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// The processor playing a GPU, as tests do.
    pub software: bool,
    /// Cooperative matrices, where it has them.
    pub matrices: bool,
}

/// A GPU as one driver shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuInfo {
    /// The adapter's name.
    pub name: String,
    /// Which it is among others of its name: its UUID, or else its place on the bus, whatever the order in which drivers
    /// list them, or else vendor and model, numbered where several are alike.
    pub id: String,
    /// Its place on the bus, by which it can be asked for, too; empty where that is not known.
    pub bus: String,
    /// The driver's name and version.
    pub driver: String,
    /// `Vulkan` or `Metal`.
    pub api: &'static str,
    /// What it is made of.
    pub kind: GpuKind,
    /// Smallest and largest subgroup.
    pub subgroup: (u32, u32),
    /// Why it is not used; `None` where it may be.
    pub refused: Option<String>,
}

impl GpuKind {
    /// A word for people.
    pub fn name(self) -> &'static str {
        match self {
            GpuKind::Discrete => "discrete",
            GpuKind::Integrated => "integrated",
            GpuKind::Virtual => "virtual",
            GpuKind::Software => "software",
            GpuKind::Other => "other",
        }
    }
}

impl GpuInfo {
    /// Whether this is what somebody calls `name`.
    fn is_called(&self, name: &str) -> bool {
        self.id == name || (!self.bus.is_empty() && self.bus == name)
    }

    /// Whether this is the same card, seen through another driver.
    fn is_twin_of(&self, other: &GpuInfo) -> bool {
        if self.bus.is_empty() || other.bus.is_empty() {
            self.id == other.id && self.driver != other.driver
        } else {
            self.bus == other.bus
        }
    }
}

impl fmt::Display for GpuInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.name, self.api, self.driver)
    }
}

/// Every GPU that a driver shows, those first that are likely faster. The processor playing one is refused unless
/// `software` is set, as tests do.
pub fn list(software: bool) -> Vec<GpuInfo> {
    adapters(software)
        .into_iter()
        .map(|(_, info)| info)
        .collect()
}

/// The adapter with this id, or the first that may be used.
///
/// # Errors
/// Why there is none.
pub(crate) fn choose(id: Option<&str>, software: bool) -> Result<(Adapter, GpuInfo), GpuError> {
    let mut all = adapters(software);
    let index = pick(all.iter().map(|(_, info)| info), id)?;
    Ok(all.swap_remove(index))
}

/// Which of these has this id, or else is the first that may be used.
fn pick<'a>(all: impl Iterator<Item = &'a GpuInfo>, id: Option<&str>) -> Result<usize, GpuError> {
    let mut refused = None;
    for (index, info) in all.enumerate() {
        if id.is_some_and(|id| !info.is_called(id)) {
            continue;
        }
        match &info.refused {
            None => return Ok(index),
            Some(reason) => {
                refused.get_or_insert_with(|| format!("{}: {reason}", info.name));
            }
        }
    }
    Err(GpuError::NoDevice(match (refused, id) {
        (Some(reason), _) => reason,
        (None, Some(id)) => format!("none is called {id}"),
        (None, None) => "no Vulkan or Metal driver shows one".to_owned(),
    }))
}

/// Bytes that a workgroup of `coop.wgsl` shares.
pub(crate) const SHARED_BY_MATRICES: u32 = 18 << 10;
/// The share of the memory that is free on a device that may be taken, in hundredths: the desktop draws with it too.
const OF_FREE_MEMORY: u8 = 90;

fn adapters(software: bool) -> Vec<(Adapter, GpuInfo)> {
    let instance = Instance::new(InstanceDescriptor {
        backends: Backends::VULKAN | Backends::METAL,
        memory_budget_thresholds: MemoryBudgetThresholds {
            for_resource_creation: Some(OF_FREE_MEMORY),
            for_device_loss: None,
        },
        ..InstanceDescriptor::new_without_display_handle()
    });
    let found = pollster::block_on(instance.enumerate_adapters(Backends::VULKAN | Backends::METAL));
    let mut all: Vec<(Adapter, GpuInfo)> = found
        .into_iter()
        .map(|adapter| {
            let info = describe(&adapter, software);
            (adapter, info)
        })
        .collect();
    all.sort_by_key(|(_, info)| (info.kind, driver_rank(&info.driver)));
    let mut infos: Vec<&mut GpuInfo> = all.iter_mut().map(|(_, info)| info).collect();
    keep_one_driver(&mut infos);
    tell_apart(&mut infos);
    all
}

fn describe(adapter: &Adapter, software: bool) -> GpuInfo {
    let info = adapter.get_info();
    let kind = match info.device_type {
        DeviceType::DiscreteGpu => GpuKind::Discrete,
        DeviceType::IntegratedGpu => GpuKind::Integrated,
        DeviceType::VirtualGpu => GpuKind::Virtual,
        DeviceType::Cpu => GpuKind::Software,
        DeviceType::Other => GpuKind::Other,
    };
    let bus = info.device_pci_bus_id;
    let id = uuid::of(adapter).unwrap_or_else(|| match &*bus {
        "" => format!("{:04x}:{:04x}", info.vendor, info.device),
        bus => bus.to_owned(),
    });
    let driver = format!("{} {}", info.driver, info.driver_info);
    let kind = if is_software(&info.name) {
        GpuKind::Software
    } else {
        kind
    };
    let missing = needed() - adapter.features();
    let refused = if kind == GpuKind::Software && !software {
        Some("it is the processor playing a GPU".to_owned())
    } else if !missing.is_empty() {
        Some(format!("it lacks {missing:?}"))
    } else if info.subgroup_min_size < 4 {
        Some("its subgroups are too small".to_owned())
    } else {
        None
    };
    GpuInfo {
        name: info.name,
        id,
        bus,
        driver: driver.trim().to_owned(),
        api: if info.backend == Backend::Metal {
            "Metal"
        } else {
            "Vulkan"
        },
        kind,
        subgroup: (info.subgroup_min_size, info.subgroup_max_size),
        refused,
    }
}

/// What every kernel needs.
pub(crate) fn needed() -> Features {
    Features::SUBGROUP | Features::IMMEDIATES
}

/// What [`matrices`] need.
pub(crate) const FOR_MATRICES: Features =
    Features::SHADER_F16.union(Features::EXPERIMENTAL_COOPERATIVE_MATRIX);

/// The cooperative matrices of an adapter that the kernels use: of halves, with sums in single precision.
pub(crate) fn matrices(adapter: &Adapter) -> Option<CoopMatrices> {
    let limits = adapter.limits();
    let info = adapter.get_info();
    // Every GPU with a Metal driver has subgroups of 32 where it has matrices, whatever the most may be.
    let subgroup = match info.backend {
        Backend::Metal => 32,
        _ => info.subgroup_max_size as usize,
    };
    let paired = info.backend != Backend::Metal;
    // Mesa's, as of 26.1: with 4 lanes it has none, whatever it says, and with 16 it crashes.
    if is_software(&info.name) && subgroup != 8 {
        return None;
    }
    let fits = adapter.features().contains(FOR_MATRICES)
        && limits.max_compute_invocations_per_workgroup as usize >= SHARERS * subgroup
        && limits.max_compute_workgroup_storage_size >= SHARED_BY_MATRICES;
    let has = adapter.cooperative_matrix_properties();
    let of = |edge: usize| {
        let is = |it: &&CooperativeMatrixProperties| {
            [it.m_size, it.n_size, it.k_size].map(|size| size as usize) == [edge; 3]
                && it.ab_type == CooperativeScalarType::F16
                && it.cr_type == CooperativeScalarType::F32
        };
        has.iter().find(is).map(|_| CoopMatrices {
            edge,
            subgroup,
            paired,
        })
    };
    of(16).or_else(|| of(8)).filter(|_| fits)
}

/// Drivers that compute on the processor and do not always say so.
fn is_software(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["llvmpipe", "swiftshader", "basic render", "warp"]
        .iter()
        .any(|word| name.contains(word))
}

/// Of two drivers for one card the better one comes first; llama.cpp's order.
fn driver_rank(driver: &str) -> usize {
    let driver = driver.to_ascii_lowercase();
    let order = ["radv", "amdvlk", "open source", "nvidia", "nvk", "dozen"];
    order
        .iter()
        .position(|name| driver.contains(name))
        .unwrap_or(2)
}

/// Refuses what an earlier entry shows already: one card, seen through a second driver.
fn keep_one_driver(all: &mut [&mut GpuInfo]) {
    for later in 1..all.len() {
        let (before, rest) = all.split_at_mut(later);
        let info = &mut *rest[0];
        if let Some(twin) = before.iter().find(|it| info.is_twin_of(it)) {
            let reason = format!("{} serves the same card", twin.driver);
            info.refused.get_or_insert(reason);
        }
    }
}

/// Calls devices whose driver gives them all one UUID by their places on the bus, and numbers those that nothing else
/// tells apart.
fn tell_apart(all: &mut [&mut GpuInfo]) {
    let ids: Vec<String> = all.iter().map(|info| info.id.clone()).collect();
    for info in all.iter_mut().filter(|info| !info.bus.is_empty()) {
        if ids.iter().filter(|id| **id == info.id).count() > 1 {
            info.id.clone_from(&info.bus);
        }
    }
    for later in (1..all.len()).rev() {
        let id = all[later].id.clone();
        let alike = all[..later].iter().filter(|it| it.id == id).count();
        if alike > 0 {
            all[later].id = format!("{id}#{}", alike + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(id: &str, driver: &str, refused: Option<&str>) -> GpuInfo {
        on_bus(id, "", driver, refused)
    }

    fn on_bus(id: &str, bus: &str, driver: &str, refused: Option<&str>) -> GpuInfo {
        GpuInfo {
            name: "Card".to_owned(),
            id: id.to_owned(),
            bus: bus.to_owned(),
            driver: driver.to_owned(),
            api: "Vulkan",
            kind: GpuKind::Discrete,
            subgroup: (32, 32),
            refused: refused.map(str::to_owned),
        }
    }

    fn told(mut all: Vec<GpuInfo>) -> Vec<GpuInfo> {
        let mut infos: Vec<&mut GpuInfo> = all.iter_mut().collect();
        keep_one_driver(&mut infos);
        tell_apart(&mut infos);
        all
    }

    #[test]
    fn of_two_gpus_of_one_name_each_can_be_asked_for() {
        let by_uuid = told(vec![
            on_bus("00000000-0001", "0000:01:00.0", "radv", None),
            on_bus("00000000-0002", "0000:02:00.0", "radv", None),
        ]);
        assert_eq!(pick(by_uuid.iter(), Some("0000:02:00.0")), Ok(1));
        // A driver that gives every card the same UUID.
        let by_bus = told(vec![
            on_bus("00000000-0001", "0000:01:00.0", "old", None),
            on_bus("00000000-0001", "0000:02:00.0", "old", None),
        ]);
        assert_eq!(by_bus[1].id, "0000:02:00.0");
        let without = told(vec![gpu("1002:744c", "", None), gpu("1002:744c", "", None)]);
        assert_eq!(without[1].id, "1002:744c#2");
        for all in [by_uuid, by_bus, without] {
            for (index, info) in all.iter().enumerate() {
                assert_eq!(pick(all.iter(), Some(&info.id)), Ok(index));
            }
            assert_eq!(pick(all.iter(), None), Ok(0));
            let unknown = pick(all.iter(), Some("0000:03:00.0"));
            assert!(
                matches!(unknown, Err(GpuError::NoDevice(why)) if why.contains("0000:03:00.0"))
            );
        }
    }

    #[test]
    fn one_card_behind_two_drivers_is_used_through_one() {
        let by_bus = told(vec![
            on_bus("00000000-0001", "0000:01:00.0", "radv", None),
            on_bus("ffffffff-ffff", "0000:01:00.0", "AMD proprietary", None),
        ]);
        let by_uuid = told(vec![
            gpu("00000000-0001", "radv", None),
            gpu("00000000-0001", "AMD proprietary", None),
        ]);
        for all in [by_bus, by_uuid] {
            assert_eq!(all[0].refused, None);
            let refused = all[1].refused.as_deref().unwrap_or_default();
            assert!(refused.contains("radv"), "{refused}");
        }
    }

    #[test]
    fn what_is_refused_is_passed_over_and_said_where_nothing_else_is_left() {
        let refused = gpu("1", "", Some("it is slow"));
        let both = [refused.clone(), gpu("2", "", None)];
        assert_eq!(pick(both.iter(), None), Ok(1));
        let why = pick([refused].iter(), None);
        assert_eq!(why, Err(GpuError::NoDevice("Card: it is slow".to_owned())));
    }
}
