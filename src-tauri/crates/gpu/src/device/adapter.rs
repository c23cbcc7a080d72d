//! The GPUs of this machine, and the rules for using them.

use std::fmt;

use wgpu::{
    Adapter, Backend, Backends, CooperativeMatrixProperties, CooperativeScalarType, DeviceType,
    Features, Instance, InstanceDescriptor, MemoryBudgetThresholds,
};

use super::uuid;
use crate::device::limits::{COOP_WORKGROUP_BYTES, CoopMatrices};
use crate::error::GpuError;

/// The kind of an adapter; faster kinds come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GpuKind {
    /// Discrete: with memory of its own.
    Discrete,
    /// Integrated: shares the CPU's memory.
    Integrated,
    /// Virtual: of a virtual machine.
    Virtual,
    /// Software Vulkan: runs on the CPU, like llvmpipe.
    Software,
    /// Something else.
    Other,
}

/// Devices and features that may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Software Vulkan, for tests.
    pub software: bool,
    /// Cooperative matrices, if the device has them.
    pub matrices: bool,
}

/// A GPU as one driver shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuInfo {
    /// The adapter's name.
    pub name: String,
    /// Stable identifier: its UUID, or else its PCI address, or else vendor and device numbers, with a suffix if
    /// several are equal.
    pub id: String,
    /// PCI address, which selects it like the id; empty if unknown.
    pub bus: String,
    /// The driver's name and version.
    pub driver: String,
    /// `Vulkan` or `Metal`.
    pub api: &'static str,
    /// Kind of adapter.
    pub kind: GpuKind,
    /// Smallest and largest subgroup size.
    pub subgroup: (u32, u32),
    /// Reason that it is not used; `None` if it may be.
    pub refused: Option<String>,
}

impl GpuKind {
    /// Lower-case name.
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
    /// Returns true if the id or the PCI address is `name`.
    fn matches(&self, name: &str) -> bool {
        self.id == name || (!self.bus.is_empty() && self.bus == name)
    }

    /// Returns true if this is the same card through another driver.
    fn is_same_card(&self, other: &GpuInfo) -> bool {
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

/// All GPUs of all drivers, by kind. Software Vulkan is refused unless `software` is set.
pub fn list(software: bool) -> Vec<GpuInfo> {
    adapters(software)
        .into_iter()
        .map(|(_, info)| info)
        .collect()
}

/// The adapter with this id, or the first that may be used.
///
/// # Errors
/// [`GpuError::NoDevice`] with the reason.
pub(crate) fn open_adapter(
    id: Option<&str>,
    software: bool,
) -> Result<(Adapter, GpuInfo), GpuError> {
    let mut all = adapters(software);
    let index = select(all.iter().map(|(_, info)| info), id)?;
    Ok(all.swap_remove(index))
}

/// Index of the GPU with this id, or of the first that may be used.
fn select<'a>(all: impl Iterator<Item = &'a GpuInfo>, id: Option<&str>) -> Result<usize, GpuError> {
    let mut refused = None;
    for (index, info) in all.enumerate() {
        if id.is_some_and(|id| !info.matches(id)) {
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
        (None, Some(id)) => format!("none has the id {id}"),
        (None, None) => "no Vulkan or Metal driver found a GPU".to_owned(),
    }))
}

/// Percentage of a device's free memory that may be allocated; the desktop needs some too.
const FREE_MEMORY_PERCENT: u8 = 90;

fn adapters(software: bool) -> Vec<(Adapter, GpuInfo)> {
    let instance = Instance::new(InstanceDescriptor {
        backends: Backends::VULKAN | Backends::METAL,
        memory_budget_thresholds: MemoryBudgetThresholds {
            for_resource_creation: Some(FREE_MEMORY_PERCENT),
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
    refuse_duplicates(&mut infos);
    make_ids_unique(&mut infos);
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
    let missing = required_features() - adapter.features();
    let refused = if kind == GpuKind::Software && !software {
        Some("it is software Vulkan, which runs on the CPU".to_owned())
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

/// Features that every kernel needs.
pub(crate) fn required_features() -> Features {
    Features::SUBGROUP | Features::IMMEDIATES
}

/// Features of cooperative matrices.
pub(crate) const COOP_FEATURES: Features =
    Features::SHADER_F16.union(Features::EXPERIMENTAL_COOPERATIVE_MATRIX);

/// The cooperative matrices of an adapter that the kernels can use: f16 with sums in f32, 16 × 16 if it has both.
pub(crate) fn coop_matrices(adapter: &Adapter) -> Option<CoopMatrices> {
    let limits = adapter.limits();
    let info = adapter.get_info();
    // On Metal every GPU with matrices has subgroups of 32, whatever the reported maximum.
    let subgroup = match info.backend {
        Backend::Metal => 32,
        _ => info.subgroup_max_size as usize,
    };
    let paired = info.backend != Backend::Metal;
    // llvmpipe as of Mesa 26.1: with subgroups of 4 it reports matrices but has none, with 16 it crashes.
    if is_software(&info.name) && subgroup != 8 {
        return None;
    }
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
    let fits = |it: &CoopMatrices| {
        adapter.features().contains(COOP_FEATURES)
            && limits.max_compute_invocations_per_workgroup as usize >= it.threads()
            && limits.max_compute_workgroup_storage_size >= COOP_WORKGROUP_BYTES
    };
    of(16).or_else(|| of(8)).filter(fits)
}

/// Returns true if an adapter is software Vulkan: not every such driver reports it.
fn is_software(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["llvmpipe", "swiftshader", "basic render", "warp"]
        .iter()
        .any(|word| name.contains(word))
}

/// Order of the drivers for one card, best first, as in llama.cpp.
fn driver_rank(driver: &str) -> usize {
    let driver = driver.to_ascii_lowercase();
    let order = ["radv", "amdvlk", "open source", "nvidia", "nvk", "dozen"];
    order
        .iter()
        .position(|name| driver.contains(name))
        .unwrap_or(2)
}

/// Refuses every entry of a card that an earlier entry shows through another driver.
fn refuse_duplicates(all: &mut [&mut GpuInfo]) {
    for later in 1..all.len() {
        let (before, rest) = all.split_at_mut(later);
        let info = &mut *rest[0];
        if let Some(first) = before.iter().find(|it| info.is_same_card(it)) {
            let reason = format!("{} serves the same card", first.driver);
            info.refused.get_or_insert(reason);
        }
    }
}

/// Makes ids unique: the PCI address if a driver reports one UUID for all cards, and a numbered suffix if nothing else
/// differs.
fn make_ids_unique(all: &mut [&mut GpuInfo]) {
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

    fn listed(mut all: Vec<GpuInfo>) -> Vec<GpuInfo> {
        let mut infos: Vec<&mut GpuInfo> = all.iter_mut().collect();
        refuse_duplicates(&mut infos);
        make_ids_unique(&mut infos);
        all
    }

    #[test]
    fn two_gpus_of_one_name_have_unique_ids() {
        let by_uuid = listed(vec![
            on_bus("00000000-0001", "0000:01:00.0", "radv", None),
            on_bus("00000000-0002", "0000:02:00.0", "radv", None),
        ]);
        assert_eq!(select(by_uuid.iter(), Some("0000:02:00.0")), Ok(1));
        // One driver reports the same UUID for every card.
        let by_bus = listed(vec![
            on_bus("00000000-0001", "0000:01:00.0", "old", None),
            on_bus("00000000-0001", "0000:02:00.0", "old", None),
        ]);
        assert_eq!(by_bus[1].id, "0000:02:00.0");
        let without = listed(vec![gpu("1002:744c", "", None), gpu("1002:744c", "", None)]);
        assert_eq!(without[1].id, "1002:744c#2");
        for all in [by_uuid, by_bus, without] {
            for (index, info) in all.iter().enumerate() {
                assert_eq!(select(all.iter(), Some(&info.id)), Ok(index));
            }
            assert_eq!(select(all.iter(), None), Ok(0));
            let unknown = select(all.iter(), Some("0000:03:00.0"));
            assert!(
                matches!(unknown, Err(GpuError::NoDevice(why)) if why.contains("0000:03:00.0"))
            );
        }
    }

    #[test]
    fn one_card_with_two_drivers_is_used_through_the_better() {
        let by_bus = listed(vec![
            on_bus("00000000-0001", "0000:01:00.0", "radv", None),
            on_bus("ffffffff-ffff", "0000:01:00.0", "AMD proprietary", None),
        ]);
        let by_uuid = listed(vec![
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
    fn refused_gpus_are_skipped_and_the_reason_is_reported_if_there_is_no_other() {
        let refused = gpu("1", "", Some("it is slow"));
        let both = [refused.clone(), gpu("2", "", None)];
        assert_eq!(select(both.iter(), None), Ok(1));
        let why = select([refused].iter(), None);
        assert_eq!(why, Err(GpuError::NoDevice("Card: it is slow".to_owned())));
    }
}
