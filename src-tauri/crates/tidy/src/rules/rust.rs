use crate::{Finding, Tree, code_only};

const UNSAFE_CRATE: &str = "src-tauri/crates/kernels/";

/// Files elsewhere with a little unsafe code, and the number of blocks: guarantees that a driver's interface cannot
/// give.
const DRIVER_CALLS: [(&str, usize); 2] = [
    // Kernels compiled without bounds checks of their own indices; and cooperative matrices, which wgpu calls experimental.
    ("src-tauri/crates/gpu/src/exec/wgpu_executor.rs", 2),
    // The UUID of a device, which wgpu does not expose.
    ("src-tauri/crates/gpu/src/device/uuid.rs", 1),
];

/// Checks that unsafe code is in `kernels`, except for a counted few blocks where a driver's interface needs it.
pub fn unsafe_code_is_in_kernels(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree
        .rust()
        .filter(|file| !file.path.starts_with(UNSAFE_CRATE))
    {
        let granted = DRIVER_CALLS.iter().find(|(path, _)| *path == file.path);
        let code = code_only(&file.text);
        let found = code
            .lines()
            .enumerate()
            .filter(|(_, line)| words(line).any(|word| word == "unsafe"));
        findings.extend(
            found
                .skip(granted.map_or(0, |(_, blocks)| *blocks))
                .map(|(index, _)| Finding::at(&file.path, index, "unsafe code outside kernels")),
        );
    }
    findings
}

/// Checks that every unsafe block and impl has a SAFETY comment right above its statement.
///
/// Clippy checks blocks more exactly; this also works without clippy.
pub fn unsafe_code_has_a_safety_comment(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let lines: Vec<&str> = file.text.lines().collect();
        let code = code_only(&file.text);
        for (index, line) in code.lines().enumerate() {
            let needs_one = line.contains("unsafe {") || line.contains("unsafe impl");
            if needs_one && !has_safety_comment(&lines, index) {
                findings.push(Finding::at(&file.path, index, "no SAFETY: comment above"));
            }
        }
    }
    findings
}

/// Checks that lints are silenced by `expect` with a reason, so that the compiler reports when it is no longer needed.
pub fn exceptions_have_reasons(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let code = code_only(&file.text);
        for (start, _) in code.match_indices('#') {
            let attribute = code[start + 1..].trim_start_matches('!');
            let Some(attribute) = attribute.strip_prefix('[') else {
                continue;
            };
            let index = code[..start].matches('\n').count();
            let text = attribute.split(']').next().unwrap_or_default();
            if text.trim_start().starts_with("allow(") {
                findings.push(Finding::at(
                    &file.path,
                    index,
                    "allow: write expect, with a reason",
                ));
            } else if text.trim_start().starts_with("expect(") && !text.contains("reason") {
                findings.push(Finding::at(&file.path, index, "expect without a reason"));
            }
        }
    }
    findings
}

/// Returns whether the statement on this line follows a comment with an argument.
fn has_safety_comment(lines: &[&str], index: usize) -> bool {
    if lines[index].contains("SAFETY:") {
        return true;
    }
    let mut above = lines[..index]
        .iter()
        .rev()
        .map(|line| line.trim())
        .peekable();
    let is_comment = |line: &str| line.starts_with("//");
    while above
        .next_if(|line| !is_comment(line) && !line.ends_with([';', '{', '}']) && !line.is_empty())
        .is_some()
    {}
    above
        .take_while(|line| is_comment(line))
        .any(|line| line.contains("SAFETY:"))
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "src-tauri/crates/kernels/src/lib.rs";

    #[test]
    fn unsafe_code_outside_kernels_is_found_but_not_the_word_in_a_comment() {
        let text = "// unsafe\nlet unsafe_code = \"unsafe\";\nunsafe { go() }";
        let tree = Tree::sample(&[("src-tauri/src/main.rs", text), (KERNEL, text)]);
        assert_eq!(
            unsafe_code_is_in_kernels(&tree),
            [Finding::at(
                "src-tauri/src/main.rs",
                2,
                "unsafe code outside kernels"
            )]
        );
    }

    #[test]
    fn a_block_beyond_the_granted_ones_is_found() {
        let (path, granted) = DRIVER_CALLS[0];
        let text = "unsafe { go() }\n".repeat(granted + 1);
        let lines: Vec<_> = unsafe_code_is_in_kernels(&Tree::sample(&[(path, &text)]))
            .iter()
            .map(|f| f.line)
            .collect();
        assert_eq!(lines, [granted + 1]);
    }

    #[test]
    fn a_block_without_safety_comment_is_found() {
        let argued = "// SAFETY: the slice has n values,\n// checked above\nlet a =\n    sum(unsafe { load(x) });\n";
        let unargued = "// SAFETY: for a\nlet a = 1;\nlet b = unsafe { load(x) };\nunsafe impl Send for A {}\n";
        assert_eq!(
            unsafe_code_has_a_safety_comment(&Tree::sample(&[(KERNEL, argued)])),
            []
        );
        assert_eq!(
            unsafe_code_has_a_safety_comment(&Tree::sample(&[(KERNEL, unargued)])).len(),
            2
        );
    }

    #[test]
    fn silenced_lints_without_a_reason_are_found() {
        let text = "#![allow(dead_code)]\n#[expect(\n    unused,\n    reason = \"x\"\n)]\n#[expect(unused)]\nlet a = [1];\n";
        let lines: Vec<_> = exceptions_have_reasons(&Tree::sample(&[(KERNEL, text)]))
            .iter()
            .map(|f| f.line)
            .collect();
        assert_eq!(lines, [1, 6]);
    }
}
