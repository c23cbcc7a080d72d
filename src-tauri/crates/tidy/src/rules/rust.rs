use crate::{Finding, Tree, code_only};

const HOME_OF_UNSAFE: &str = "src-tauri/crates/kernels/";

/// Files elsewhere with a little unsafe code, and how many blocks of it: what a driver's interface cannot promise.
const MEETS_DRIVERS: [(&str, usize); 2] = [
    // Kernels that are compiled as they are written, without checks of our own indices; and cooperative matrices, which
    // wgpu calls an experiment.
    ("src-tauri/crates/gpu/src/exec/wgpu_executor.rs", 2),
    // A question that wgpu does not ask.
    ("src-tauri/crates/gpu/src/device/uuid.rs", 1),
];

/// Unsafe code lives in `kernels`, but for a counted few blocks where a driver is met.
pub fn unsafe_has_a_home(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree
        .rust()
        .filter(|file| !file.path.starts_with(HOME_OF_UNSAFE))
    {
        let granted = MEETS_DRIVERS.iter().find(|(path, _)| *path == file.path);
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

/// Every unsafe block and impl has, right above its statement, the argument why it is sound.
///
/// Clippy holds blocks to this more exactly; here it holds for whoever has no clippy at hand.
pub fn unsafe_has_an_argument(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let lines: Vec<&str> = file.text.lines().collect();
        let code = code_only(&file.text);
        for (index, line) in code.lines().enumerate() {
            let needs_one = line.contains("unsafe {") || line.contains("unsafe impl");
            if needs_one && !is_argued(&lines, index) {
                findings.push(Finding::at(&file.path, index, "no SAFETY: comment above"));
            }
        }
    }
    findings
}

/// A lint is silenced by `expect` with a reason, so that the compiler reports when it is no longer needed.
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

/// Whether the statement that holds this line follows a comment with an argument.
fn is_argued(lines: &[&str], index: usize) -> bool {
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
    fn unsafe_away_from_home_is_found_but_not_the_word_in_a_comment() {
        let text = "// unsafe\nlet unsafe_code = \"unsafe\";\nunsafe { go() }";
        let tree = Tree::made_up(&[("src-tauri/src/main.rs", text), (KERNEL, text)]);
        assert_eq!(
            unsafe_has_a_home(&tree),
            [Finding::at(
                "src-tauri/src/main.rs",
                2,
                "unsafe code outside kernels"
            )]
        );
    }

    #[test]
    fn where_a_driver_is_met_one_block_too_many_is_found() {
        let (path, granted) = MEETS_DRIVERS[0];
        let text = "unsafe { go() }\n".repeat(granted + 1);
        let lines: Vec<_> = unsafe_has_a_home(&Tree::made_up(&[(path, &text)]))
            .iter()
            .map(|f| f.line)
            .collect();
        assert_eq!(lines, [granted + 1]);
    }

    #[test]
    fn an_unargued_block_is_found() {
        let argued = "// SAFETY: the slice has n values,\n// checked above\nlet a =\n    sum(unsafe { load(x) });\n";
        let unargued = "// SAFETY: for a\nlet a = 1;\nlet b = unsafe { load(x) };\nunsafe impl Send for A {}\n";
        assert_eq!(
            unsafe_has_an_argument(&Tree::made_up(&[(KERNEL, argued)])),
            []
        );
        assert_eq!(
            unsafe_has_an_argument(&Tree::made_up(&[(KERNEL, unargued)])).len(),
            2
        );
    }

    #[test]
    fn silenced_lints_without_a_reason_are_found() {
        let text = "#![allow(dead_code)]\n#[expect(\n    unused,\n    reason = \"x\"\n)]\n#[expect(unused)]\nlet a = [1];\n";
        let lines: Vec<_> = exceptions_have_reasons(&Tree::made_up(&[(KERNEL, text)]))
            .iter()
            .map(|f| f.line)
            .collect();
        assert_eq!(lines, [1, 6]);
    }
}
