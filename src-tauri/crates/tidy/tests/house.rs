//! Every rule, over this repository.

use std::sync::LazyLock;

use tidy::{Finding, Tree, rules};

static REPOSITORY: LazyLock<Tree> =
    LazyLock::new(|| Tree::of_repository().expect("the repository can be read"));

fn hold(rule: fn(&Tree) -> Vec<Finding>) {
    let tree = &*REPOSITORY;
    assert!(
        tree.file("src-tauri/crates/tidy/src/lib.rs").is_some(),
        "this is not the repository"
    );
    let findings: Vec<String> = rule(tree).iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

macro_rules! hold {
    ($($rule:ident),+ $(,)?) => { $(#[test] fn $rule() { hold(rules::$rule); })+ };
}

hold![
    arrows,
    colours_are_tokens,
    commands_are_granted,
    comments_begin_with_a_noun_or_a_verb,
    exceptions_have_reasons,
    file_lengths,
    file_names,
    licences,
    link_targets_exist,
    lints_are_inherited,
    machine_paths,
    named_files_exist,
    no_circle_of_files,
    no_network_code,
    only_host_names_tauri,
    type_names,
    ui_stays_offline,
    unfinished_work,
    unsafe_code_has_a_safety_comment,
    unsafe_code_is_in_kernels,
    vocabulary,
    window_is_restricted,
];
