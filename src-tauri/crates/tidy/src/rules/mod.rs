//! The rules, by subject.

mod arrows;
mod capabilities;
mod circles;
mod comments;
mod documents;
mod names;
mod rust;
mod type_names;
mod ui;
mod vocabulary;
mod words;

pub use arrows::{arrows, lints_are_inherited, no_network_code};
pub use capabilities::{commands_are_granted, window_is_restricted};
pub use circles::no_circle_of_files;
pub use comments::comments_begin_with_a_noun_or_a_verb;
pub use documents::{licences, link_targets_exist, named_files_exist};
pub use names::{file_lengths, file_names};
pub use rust::{
    exceptions_have_reasons, unsafe_code_has_a_safety_comment, unsafe_code_is_in_kernels,
};
pub use type_names::type_names;
pub use ui::{colours_are_tokens, only_host_names_tauri, ui_stays_offline};
pub use vocabulary::vocabulary;
pub use words::{machine_paths, unfinished_work};
