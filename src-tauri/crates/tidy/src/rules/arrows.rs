use crate::{File, Finding, Tree, code_only};

/// Packages of the workspace that each package may depend on.
const ARROWS: &[(&str, &[&str])] = &[
    (
        "src-tauri/",
        &[
            "app", "chat", "devices", "guide", "host", "mcp", "models", "store", "system",
        ],
    ),
    ("src-tauri/crates/api/", &["system"]),
    (
        "src-tauri/crates/app/",
        &[
            "api",
            "bench",
            "chat",
            "chat_files",
            "devices",
            "download",
            "engine",
            "figures",
            "guide",
            "host",
            "mcp",
            "models",
            "quantize",
            "reference",
            "store",
            "system",
            "tools",
        ],
    ),
    (
        "src-tauri/crates/host/",
        &["chat", "devices", "engine", "kv_store", "models"],
    ),
    (
        "src-tauri/crates/bench/",
        &["engine", "gpu", "inference", "kernels"],
    ),
    (
        "src-tauri/crates/chat/",
        &[
            "figures",
            "guide",
            "inference",
            "json_text",
            "store",
            "tools",
        ],
    ),
    (
        "src-tauri/crates/chat_files/",
        &["figures", "json_text", "store"],
    ),
    (
        "src-tauri/crates/devices/",
        &["engine", "figures", "gpu", "inference", "kernels", "system"],
    ),
    (
        "src-tauri/crates/engine/",
        &["figures", "gpu", "inference", "kernels"],
    ),
    ("src-tauri/crates/download/", &["system"]),
    ("src-tauri/crates/fetch/", &["download"]),
    ("src-tauri/crates/figures/", &[]),
    ("src-tauri/crates/gpu/", &["kernels"]),
    ("src-tauri/crates/guide/", &[]),
    ("src-tauri/crates/inference/", &[]),
    ("src-tauri/crates/json_text/", &[]),
    ("src-tauri/crates/kernels/", &["inference"]),
    ("src-tauri/crates/kv_store/", &["system"]),
    (
        "src-tauri/crates/mcp/",
        &["figures", "inference", "system", "tools"],
    ),
    (
        "src-tauri/crates/models/",
        &["download", "engine", "system"],
    ),
    ("src-tauri/crates/quantize/", &["engine", "kernels"]),
    ("src-tauri/crates/reference/", &[]),
    ("src-tauri/crates/serve/", &["api", "system"]),
    ("src-tauri/crates/store/", &["inference", "system"]),
    ("src-tauri/crates/system/", &[]),
    ("src-tauri/crates/testing/", &["gpu"]),
    ("src-tauri/crates/tidy/", &[]),
    (
        "src-tauri/crates/tools/",
        &["figures", "guide", "inference", "system"],
    ),
];

/// Additional packages that the tests of a package may depend on: the engine is compared with independent
/// implementations, and distances of logits and the texts for speculative decoding have one definition. The shell's
/// tests make models, and compare the parameters of sampling; the host's run whole chats.
const TEST_ARROWS: [(&str, &[&str]); 5] = [
    ("src-tauri/", &["engine"]),
    ("src-tauri/crates/host/", &["guide", "store"]),
    ("src-tauri/crates/engine/", &["bench", "reference"]),
    ("src-tauri/crates/quantize/", &["reference"]),
    ("src-tauri/crates/reference/", &["engine"]),
];

/// Package that the tests of any package may depend on.
const TESTING: &str = "testing";

/// Packages that alone may name these; a name ending in `*` is a prefix.
const EXCLUSIVE_USERS: [(&str, &[&str]); 9] = [
    ("tauri*", &["src-tauri/"]),
    ("rusqlite", &["src-tauri/crates/store/"]),
    (
        "candle*",
        &["src-tauri/crates/quantize/", "src-tauri/crates/reference/"],
    ),
    ("safetensors", &["src-tauri/crates/quantize/"]),
    ("tokenizers", &["src-tauri/crates/engine/"]),
    ("wgpu", &["src-tauri/crates/gpu/"]),
    ("minijinja*", &["src-tauri/crates/engine/"]),
    ("rmcp", &["src-tauri/crates/mcp/"]),
    // The shell's commands, and the MCP SDK and hyper, which have no other interface.
    (
        "tokio",
        &[
            "src-tauri/",
            "src-tauri/crates/mcp/",
            "src-tauri/crates/serve/",
        ],
    ),
];

/// Packages of the programs that open network sockets, and the crates by which they do so. No package depends on them:
/// `arrows` checks that.
const ON_THE_NETWORK: [(&str, &[&str]); 2] = [
    ("src-tauri/crates/fetch/", &["rustls", "ureq"]),
    ("src-tauri/crates/serve/", &["axum", "hyper"]),
];

/// Types of sockets, and the only places that may name them: the server against which the downloader is tested, and the
/// local API with its tests.
const SOCKETS: [&str; 4] = ["TcpListener", "TcpStream", "UdpSocket", "socket2"];
const WITH_SOCKETS: [&str; 2] = [
    "src-tauri/crates/fetch/tests/fetch/server.rs",
    "src-tauri/crates/serve/",
];

/// Crates that open network connections, and plugins that give the page access to one.
const NETWORK: [&str; 15] = [
    "attohttpc",
    "axum",
    "curl",
    "hyper",
    "isahc",
    "minreq",
    "native-tls",
    "reqwest",
    "rustls",
    "surf",
    "tauri-plugin-http",
    "tauri-plugin-shell",
    "tauri-plugin-updater",
    "tauri-plugin-websocket",
    "ureq",
];

/// Checks that dependencies point one way: shell to app to host, host to chat and engine, and so on.
pub fn arrows(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Dependency {
        package,
        line,
        name,
        for_tests,
    } in dependencies(tree)
    {
        let folder = folder_of(package);
        let Some((_, allowed)) = ARROWS.iter().find(|(of, _)| *of == folder) else {
            findings.push(Finding::in_file(
                &package.path,
                "a package that tidy's ARROWS do not place",
            ));
            continue;
        };
        let is_ours = ARROWS
            .iter()
            .any(|(of, _)| of.ends_with(&format!("/{name}/")));
        let in_tests = TEST_ARROWS.iter().find(|(of, _)| *of == folder);
        let in_tests = in_tests.filter(|(_, allowed)| for_tests && allowed.contains(&&*name));
        let is_testing = for_tests && name == TESTING;
        if is_ours && !is_testing && !allowed.contains(&name.as_str()) && in_tests.is_none() {
            findings.push(Finding::at(
                &package.path,
                line,
                format!("{name} is not below this package"),
            ));
        }
        let homes = EXCLUSIVE_USERS
            .iter()
            .find(|(pattern, _)| matches(pattern, &name));
        if let Some((_, homes)) = homes.filter(|(_, homes)| !homes.contains(&folder)) {
            findings.push(Finding::at(
                &package.path,
                line,
                format!("only {} may name {name}", homes.join(" and ")),
            ));
        }
    }
    findings
}

/// Checks that no dependency reaches a network and no code names a socket, except for the programs that do.
pub fn no_network_code(tree: &Tree) -> Vec<Finding> {
    let opens_sockets = |it: &Dependency<'_>| {
        let (folder, name) = (folder_of(it.package), it.name.as_str());
        let mut programs = ON_THE_NETWORK.iter();
        NETWORK.contains(&name)
            && !programs.any(|(of, crates)| *of == folder && crates.contains(&name))
    };
    let mut findings: Vec<Finding> = dependencies(tree)
        .filter(opens_sockets)
        .map(|it| {
            Finding::at(
                &it.package.path,
                it.line,
                format!("{} opens sockets", it.name),
            )
        })
        .collect();
    let has_sockets = |file: &&File| WITH_SOCKETS.iter().any(|it| file.path.starts_with(it));
    for file in tree.rust().filter(|file| !has_sockets(file)) {
        for (index, line) in code_only(&file.text).lines().enumerate() {
            let names = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            let named = names.filter(|name| SOCKETS.contains(name));
            findings.extend(
                named.map(|name| Finding::at(&file.path, index, format!("{name} is a socket"))),
            );
        }
    }
    findings
}

/// Checks that every package takes the workspace's lints; kernels and gpu, which may hold unsafe code, name their own.
pub fn lints_are_inherited(tree: &Tree) -> Vec<Finding> {
    let wanted = |file: &File| match folder_of(file) {
        "src-tauri/crates/kernels/" | "src-tauri/crates/gpu/" => {
            "undocumented_unsafe_blocks = \"deny\""
        }
        _ => "[lints]\nworkspace = true",
    };
    manifests(tree)
        .filter(|file| !file.text.contains(wanted(file)))
        .map(|file| Finding::in_file(&file.path, format!("lacks {:?}", wanted(file))))
        .collect()
}

fn manifests(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.files.iter().filter(|file| file.name() == "Cargo.toml")
}

/// A dependency as a manifest declares it.
struct Dependency<'a> {
    /// The manifest.
    package: &'a File,
    /// The line's index.
    line: usize,
    name: String,
    /// True if only tests and benchmarks have it.
    for_tests: bool,
}

/// Returns every dependency that a package declares, of any kind.
fn dependencies(tree: &Tree) -> impl Iterator<Item = Dependency<'_>> {
    manifests(tree).flat_map(|package| {
        let mut section = "";
        let dependency = move |line, section: &str, name: &str| Dependency {
            package,
            line,
            name: name.to_owned(),
            for_tests: section.ends_with("dev-dependencies"),
        };
        package
            .text
            .lines()
            .enumerate()
            .filter_map(move |(index, line)| {
                let line = line.trim();
                if let Some(header) = line.strip_prefix('[') {
                    section = header.trim_end_matches(']');
                    // The form with a table of its own: [dependencies.name]
                    let (kind, name) = section.rsplit_once('.')?;
                    return is_dependencies(kind).then(|| dependency(index, kind, name));
                }
                if !is_dependencies(section) || line.starts_with('#') {
                    return None;
                }
                let name = line.split(['=', '.', ' ']).next()?;
                (!name.is_empty()).then(|| dependency(index, section, name))
            })
    })
}

/// Returns whether a section declares dependencies. Shared versions in the workspace's table are none.
fn is_dependencies(section: &str) -> bool {
    section.ends_with("dependencies") && section != "workspace.dependencies"
}

fn folder_of(manifest: &File) -> &str {
    manifest.path.trim_end_matches("Cargo.toml")
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAT: &str = "src-tauri/crates/chat/Cargo.toml";

    #[test]
    fn an_arrow_that_points_up_or_aside_is_found() {
        let tree = Tree::sample(&[(
            CHAT,
            "[dependencies]\nstore.workspace = true\nengine = { path = \"../engine\" }",
        )]);
        assert_eq!(
            arrows(&tree),
            [Finding::at(CHAT, 2, "engine is not below this package")]
        );
    }

    #[test]
    fn a_crate_away_from_its_home_is_found_in_every_kind_of_table() {
        let manifest = "[dev-dependencies]\ntauri-plugin-dialog = \"2\"\n[target.'cfg(unix)'.dependencies]\nrusqlite = \"1\"\n[dependencies.candle-core]\n";
        let lines: Vec<_> = arrows(&Tree::sample(&[(CHAT, manifest)]))
            .iter()
            .map(|f| f.line)
            .collect();
        assert_eq!(lines, [2, 4, 5]);
    }

    #[test]
    fn tests_may_compare_what_the_product_keeps_apart() {
        let path = "src-tauri/crates/reference/Cargo.toml";
        let tree = |section| {
            let manifest = format!("[{section}]\nengine.workspace = true\ncandle-core = \"0.11\"");
            arrows(&Tree::sample(&[(path, &*manifest)]))
        };
        assert_eq!(tree("dev-dependencies"), []);
        assert_eq!(
            tree("dependencies"),
            [Finding::at(path, 1, "engine is not below this package")]
        );
    }

    #[test]
    fn the_shell_and_shared_versions_may_name_tauri() {
        let manifest = "[workspace.dependencies]\nrusqlite = \"1\"\n[dependencies]\ntauri = \"2\"\n# reqwest = \"1\"";
        let tree = Tree::sample(&[("src-tauri/Cargo.toml", manifest)]);
        assert_eq!(arrows(&tree), []);
        assert_eq!(no_network_code(&tree), []);
    }

    #[test]
    fn a_package_that_has_no_place_is_found() {
        let tree = Tree::sample(&[(
            "src-tauri/crates/new/Cargo.toml",
            "[dependencies]\nserde = \"1\"",
        )]);
        assert_eq!(arrows(&tree).len(), 1);
    }

    #[test]
    fn network_code_is_found() {
        let tree = Tree::sample(&[(CHAT, "[dependencies]\nureq = \"3\"")]);
        assert_eq!(
            no_network_code(&tree),
            [Finding::at(CHAT, 1, "ureq opens sockets")]
        );
        let code = "// TcpStream\nuse std::net::{IpAddr, TcpStream};";
        let tree = Tree::sample(&[("src-tauri/src/main.rs", code), (WITH_SOCKETS[0], code)]);
        assert_eq!(
            no_network_code(&tree),
            [Finding::at(
                "src-tauri/src/main.rs",
                1,
                "TcpStream is a socket"
            )]
        );
    }

    #[test]
    fn the_downloader_has_its_own_crates_alone_and_no_package_depends_on_it() {
        let path = "src-tauri/crates/fetch/Cargo.toml";
        let manifest = "[dependencies]\nureq = \"3\"\nrustls = \"0.23\"\nreqwest = \"0.12\"";
        assert_eq!(
            no_network_code(&Tree::sample(&[(path, manifest)])),
            [Finding::at(path, 3, "reqwest opens sockets")]
        );
        for package in [
            "src-tauri/",
            "src-tauri/crates/chat/",
            "src-tauri/crates/download/",
        ] {
            let path = format!("{package}Cargo.toml");
            let tree = Tree::sample(&[(&*path, "[dev-dependencies]\nfetch.workspace = true")]);
            assert_eq!(
                arrows(&tree),
                [Finding::at(&path, 1, "fetch is not below this package")]
            );
        }
    }

    #[test]
    fn lints_left_out_are_found() {
        let tree = Tree::sample(&[
            (CHAT, "[package]\n"),
            (
                "src-tauri/crates/kernels/Cargo.toml",
                "[lints]\nworkspace = true\n",
            ),
        ]);
        assert_eq!(lints_are_inherited(&tree).len(), 2);
    }
}
