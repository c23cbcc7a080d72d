//! Power supply of the computer.

use std::fs;
use std::path::Path;

/// Function that returns whether the computer runs on its battery; replaced in tests.
#[derive(Clone, Copy)]
pub struct Power(pub fn() -> bool);

impl Default for Power {
    fn default() -> Self {
        Self(is_on_battery)
    }
}

/// Returns whether the computer runs on its battery, or that is unknown: then no draft is read ahead.
fn is_on_battery() -> bool {
    if cfg!(target_os = "linux") {
        is_on_battery_in(Path::new("/sys/class/power_supply"))
    } else {
        true
    }
}

/// Reads this from a folder as Linux has it: true if a battery of the computer itself is discharging. A computer
/// without batteries is on mains.
fn is_on_battery_in(supplies: &Path) -> bool {
    let Ok(entries) = fs::read_dir(supplies) else {
        return false;
    };
    let field = |supply: &Path, name: &str| {
        let text = fs::read_to_string(supply.join(name)).unwrap_or_default();
        text.trim().to_owned()
    };
    entries.flatten().any(|entry| {
        let supply = entry.path();
        // The battery of a mouse has the scope `Device`.
        field(&supply, "type") == "Battery"
            && field(&supply, "scope") != "Device"
            && field(&supply, "status") == "Discharging"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_computers_own_battery_counts_and_only_while_it_discharges() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(!is_on_battery_in(&folder.path().join("none")));
        let supply = |name: &str, fields: &[(&str, &str)]| {
            let supply = folder.path().join(name);
            fs::create_dir_all(&supply).expect("made");
            for (field, value) in fields {
                fs::write(supply.join(field), format!("{value}\n")).expect("written");
            }
        };
        supply("AC", &[("type", "Mains"), ("online", "0")]);
        let mouse = [
            ("type", "Battery"),
            ("scope", "Device"),
            ("status", "Discharging"),
        ];
        supply("hidpp_battery_0", &mouse);
        supply("BAT0", &[("type", "Battery"), ("status", "Charging")]);
        assert!(!is_on_battery_in(folder.path()));
        supply("BAT1", &[("type", "Battery"), ("status", "Discharging")]);
        assert!(is_on_battery_in(folder.path()));
        supply("BAT1", &[("status", "Not charging")]);
        assert!(!is_on_battery_in(folder.path()));
    }
}
