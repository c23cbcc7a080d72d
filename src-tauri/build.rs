//! Tells Tauri the app's commands, so that each needs a grant in `capabilities/main.json`.

include!("src/each_command.rs");

macro_rules! names {
    ($($name:ident),+) => { &[$(stringify!($name)),+] };
}

fn main() {
    println!("cargo:rerun-if-changed=src/each_command.rs");
    let manifest = tauri_build::AppManifest::new().commands(each_command!(names));
    let attributes = tauri_build::Attributes::new().app_manifest(manifest);
    tauri_build::try_build(attributes).expect("tauri.conf.json and capabilities/ are in order");
}
