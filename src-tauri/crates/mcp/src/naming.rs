//! Names of tools, as the model writes them: `{server}_{tool}`, from the characters `A-Za-z0-9_-`, at most 64.
//!
//! A name depends on the settings and on the server's own list alone, never on which servers run: a permission that was
//! given for a name must not pass to another tool. So a server's part has no underscore, and is unique among all
//! servers of the settings.

/// Longest name that models and their formats accept.
const LONGEST: usize = 64;
/// Longest part of a server.
const LONGEST_PREFIX: usize = 24;

/// Returns the part of each server, in the order of the settings.
pub fn prefixes<'a>(servers: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut prefixes: Vec<String> = Vec::new();
    for server in servers {
        let mut plain = allowed(server, '-').replace('_', "-");
        plain.truncate(LONGEST_PREFIX);
        let plain = plain.trim_matches('-');
        let plain = if plain.is_empty() { "server" } else { plain };
        let mut prefix = plain.to_owned();
        let mut number = 2;
        while prefixes.contains(&prefix) {
            prefix = format!("{plain}-{number}");
            number += 1;
        }
        prefixes.push(prefix);
    }
    prefixes
}

/// Returns the names of a server's tools, in their order. Where two would be the same, the tool whose own name had to be
/// changed gets the hash of that name.
pub fn tool_names(prefix: &str, own_names: &[&str]) -> Vec<String> {
    let named = |own: &str| {
        let mut part = allowed(own, '_');
        part.truncate(LONGEST - prefix.len() - 1);
        format!("{prefix}_{part}")
    };
    let is_same = |name: &str, own: &str| name[prefix.len() + 1..] == *own;
    let plain: Vec<String> = own_names.iter().map(|own| named(own)).collect();
    let names = plain.iter().zip(own_names);
    names
        .map(|(name, own)| {
            let rivals = plain.iter().filter(|it| *it == name).count();
            if rivals == 1 || is_same(name, own) {
                return name.clone();
            }
            let hash = blake3::hash(own.as_bytes()).to_hex();
            let mut cut = name.clone();
            cut.truncate(LONGEST - 9);
            format!("{cut}_{}", &hash[..8])
        })
        .collect()
}

/// Replaces each run of other characters.
fn allowed(text: &str, replacement: char) -> String {
    let mut result = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') {
            result.push(c);
        } else if !result.ends_with(replacement) {
            result.push(replacement);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_with_similar_names_have_different_parts() {
        let servers = ["my files", "my_files", "my-files", "Ключи", "", "Ключи 2"];
        let parts = prefixes(servers);
        assert_eq!(
            parts,
            [
                "my-files",
                "my-files-2",
                "my-files-3",
                "server",
                "server-2",
                "2"
            ]
        );
    }

    #[test]
    fn names_are_short_unique_and_do_not_depend_on_their_order() {
        let long = "x".repeat(100);
        let longer = "x".repeat(101);
        let own = [
            "read",
            "read file",
            "read_file",
            "read/file",
            &long,
            &longer,
        ];
        let names = tool_names("files", &own);
        assert_eq!(names[0], "files_read");
        assert_eq!(names[2], "files_read_file");
        for name in &names {
            assert!(name.len() <= LONGEST, "{name}");
            assert_eq!(names.iter().filter(|it| *it == name).count(), 1, "{name}");
        }
        let mut turned = own;
        turned.reverse();
        let mut again = tool_names("files", &turned);
        again.reverse();
        assert_eq!(again, names);
    }
}
