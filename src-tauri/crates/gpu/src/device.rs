//! The GPUs of this machine, and which of them may be used.

use std::fmt;

use wgpu::{Adapter, Backend, Backends, DeviceType, Features, Instance, InstanceDescriptor};

use crate::failure::Failure;

/// What a device is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
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

/// A GPU as one driver shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The adapter's name.
    pub name: String,
    /// Which it is among others of its name, whatever the order in which drivers list them: its place on the bus, or
    /// else vendor and model.
    pub id: String,
    /// The driver's name and version.
    pub driver: String,
    /// `Vulkan` or `Metal`.
    pub api: &'static str,
    /// What it is made of.
    pub kind: Kind,
    /// Smallest and largest subgroup.
    pub subgroup: (u32, u32),
    /// Why it is not used; `None` where it may be.
    pub refused: Option<String>,
}

impl Kind {
    /// A word for people.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Discrete => "discrete",
            Kind::Integrated => "integrated",
            Kind::Virtual => "virtual",
            Kind::Software => "software",
            Kind::Other => "other",
        }
    }
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.name, self.api, self.driver)
    }
}

/// Every GPU that a driver shows, those first that are likely faster. The processor playing one is refused unless
/// `software` is set, as tests do.
pub fn list(software: bool) -> Vec<DeviceInfo> {
    adapters(software)
        .into_iter()
        .map(|(_, info)| info)
        .collect()
}

/// The adapter with this id, or the first that may be used.
///
/// # Errors
/// Why there is none.
pub(crate) fn choose(id: Option<&str>, software: bool) -> Result<(Adapter, DeviceInfo), Failure> {
    let none = || Failure::NoDevice("no Vulkan or Metal driver shows one".to_owned());
    let mut refused = None;
    for (adapter, info) in adapters(software) {
        if id.is_some_and(|id| id != info.id) {
            continue;
        }
        match &info.refused {
            None => return Ok((adapter, info)),
            Some(reason) => {
                refused.get_or_insert_with(|| format!("{}: {reason}", info.name));
            }
        }
    }
    Err(match (refused, id) {
        (Some(reason), _) => Failure::NoDevice(reason),
        (None, Some(id)) => Failure::NoDevice(format!("none is called {id}")),
        (None, None) => none(),
    })
}

fn adapters(software: bool) -> Vec<(Adapter, DeviceInfo)> {
    let instance = Instance::new(InstanceDescriptor {
        backends: Backends::VULKAN | Backends::METAL,
        ..InstanceDescriptor::new_without_display_handle()
    });
    let found = pollster::block_on(instance.enumerate_adapters(Backends::VULKAN | Backends::METAL));
    let mut all: Vec<(Adapter, DeviceInfo)> = found
        .into_iter()
        .map(|adapter| {
            let info = describe(&adapter, software);
            (adapter, info)
        })
        .collect();
    all.sort_by_key(|(_, info)| (info.kind, driver_rank(&info.driver)));
    keep_one_driver(&mut all);
    all
}

fn describe(adapter: &Adapter, software: bool) -> DeviceInfo {
    let info = adapter.get_info();
    let kind = match info.device_type {
        DeviceType::DiscreteGpu => Kind::Discrete,
        DeviceType::IntegratedGpu => Kind::Integrated,
        DeviceType::VirtualGpu => Kind::Virtual,
        DeviceType::Cpu => Kind::Software,
        DeviceType::Other => Kind::Other,
    };
    let bus = info.device_pci_bus_id;
    let id = if bus.is_empty() {
        format!("{:04x}:{:04x}", info.vendor, info.device)
    } else {
        bus
    };
    let driver = format!("{} {}", info.driver, info.driver_info);
    let kind = if is_software(&info.name) {
        Kind::Software
    } else {
        kind
    };
    let missing = needed() - adapter.features();
    let refused = if kind == Kind::Software && !software {
        Some("it is the processor playing a GPU".to_owned())
    } else if !missing.is_empty() {
        Some(format!("it lacks {missing:?}"))
    } else if info.subgroup_min_size < 4 {
        Some("its subgroups are too small".to_owned())
    } else {
        None
    };
    DeviceInfo {
        name: info.name,
        id,
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
fn keep_one_driver(all: &mut [(Adapter, DeviceInfo)]) {
    for later in 1..all.len() {
        let (before, rest) = all.split_at_mut(later);
        let twin = before
            .iter()
            .find(|(_, info)| info.id.contains('.') && info.id == rest[0].1.id);
        if let Some((_, twin)) = twin {
            rest[0]
                .1
                .refused
                .get_or_insert_with(|| format!("{} serves the same card", twin.driver));
        }
    }
}
