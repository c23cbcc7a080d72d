//! Display server and WebKit's renderer.

#[cfg(target_os = "linux")]
pub use linux::{can_open_window, choose_renderer};

#[cfg(not(target_os = "linux"))]
pub fn can_open_window() -> Result<(), String> {
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub fn choose_renderer() {}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::{self, File};
    use std::os::unix::process::CommandExt;
    use std::path::Path;
    use std::process::Command;

    const DISABLE_DMABUF: &str = "WEBKIT_DISABLE_DMABUF_RENDERER";

    /// Checks that a window can open; the error says why not.
    pub fn can_open_window() -> Result<(), String> {
        let names_display = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if !["DISPLAY", "WAYLAND_DISPLAY"]
            .into_iter()
            .any(names_display)
        {
            return Err("there is no display".to_owned());
        }
        gtk::init().map_err(|_| "the display cannot be opened".to_owned())
    }

    /// Makes WebKit copy its pictures if the GPU is missing, or its driver would show an empty window. Without a GPU
    /// that saves a quarter of the CPU time, which the model needs. A variable that the user set, `=0` included, has
    /// precedence.
    ///
    /// The variable must be set before WebKit starts, and setting one inside a process is unsafe, so the process
    /// restarts itself with it.
    pub fn choose_renderer() {
        if std::env::var_os(DISABLE_DMABUF).is_some() || has_usable_gpu() {
            return;
        }
        let Ok(executable) = std::env::current_exe() else {
            return;
        };
        let error = Command::new(executable)
            .args(std::env::args_os().skip(1))
            .env(DISABLE_DMABUF, "1")
            .exec();
        // exec returns only on failure; the window still works, a little slower.
        tracing::warn!("could not restart with {DISABLE_DMABUF}=1: {error}");
    }

    fn has_usable_gpu() -> bool {
        let is_nvidia = Path::new("/proc/driver/nvidia/version").exists();
        let Ok(nodes) = fs::read_dir("/dev/dri") else {
            return false;
        };
        let has_node = nodes.flatten().any(|node| {
            node.file_name().to_string_lossy().starts_with("renderD")
                && File::open(node.path()).is_ok()
        });
        has_node && !is_nvidia
    }
}
