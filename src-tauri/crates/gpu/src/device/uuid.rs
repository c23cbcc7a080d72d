//! A device's UUID, as other programs print it. With most drivers it belongs to the card; Mesa derives the UUID of an
//! AMD card from its PCI address.

use ash::vk;
use wgpu::Adapter;
use wgpu::hal::api::Vulkan;

/// The UUID that Vulkan reports, formatted; `None` if there is none.
pub(super) fn of(adapter: &Adapter) -> Option<String> {
    // SAFETY: the raw handles are only read, and do not outlive the adapter. `get_physical_device_properties2` needs
    // Vulkan 1.1 of instance and device, which is checked before.
    let bytes = unsafe {
        let adapter = adapter.as_hal::<Vulkan>()?;
        let (shared, device) = (adapter.shared_instance(), adapter.raw_physical_device());
        let instance = shared.raw_instance();
        let version = instance.get_physical_device_properties(device).api_version;
        if shared.instance_api_version().min(version) < vk::API_VERSION_1_1 {
            return None;
        }
        let mut ids = vk::PhysicalDeviceIDProperties::default();
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut ids);
        instance.get_physical_device_properties2(device, &mut properties);
        ids.device_uuid
    };
    format(bytes)
}

/// Formats a UUID in groups of 8, 4, 4, 4 and 12 digits; `None` for zeros.
fn format(bytes: [u8; 16]) -> Option<String> {
    if bytes == [0; 16] {
        return None;
    }
    let digits = format!("{:032x}", u128::from_be_bytes(bytes));
    let groups = [0..8, 8..12, 12..16, 16..20, 20..32].map(|group| &digits[group]);
    Some(groups.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_formatted_in_groups_and_zeros_are_none() {
        let bytes: [u8; 16] = std::array::from_fn(|at| at as u8);
        let text = format(bytes);
        assert_eq!(
            text.as_deref(),
            Some("00010203-0405-0607-0809-0a0b0c0d0e0f")
        );
        assert_eq!(format([0; 16]), None);
    }
}
