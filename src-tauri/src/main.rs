//! Goldcrest: a native window that chats with SmolLM3 offline, and the same model on the command line.
//!
//! This crate is the shell, the only code that names tauri. It connects `chat` and `engine` and holds no rules of its
//! own: a command goes to `chat`, a turn goes to `engine`.

#![cfg_attr(all(windows, not(debug_assertions)), windows_subsystem = "windows")]

#[macro_use]
mod each_command;
mod app;
mod applied_settings;
mod bundled_model;
mod cli;
mod commands;
mod data_folder;
mod data_pointer;
mod desktop;
mod display;
mod environment;
mod events;
mod exporting;
mod file_dialogs;
mod file_names;
mod folders;
mod given_files;
mod importing;
mod instance;
mod limits;
mod logging;
mod lost_folder;
mod main_window;
mod model;
mod model_check;
mod models;
mod network_check;
mod power;
mod preset_files;
mod reference_process;
mod reply;
mod startup;
mod test_hooks;
mod transfers;
mod verify;
mod visible;
mod window;
mod wire;
mod worker;

#[cfg(test)]
mod bindings;
#[cfg(test)]
mod guide_names;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use folders::Folders;

fn main() -> ExitCode {
    // No other protection is possible, and a system on which it fails is no worse than without.
    let _ = limits::no_core_dumps();
    let arguments = cli::parse();
    match arguments.command {
        Some(command) => {
            logging::to_stderr();
            cli::run(command)
        }
        None => {
            arguments.window.flags().obey();
            open_window(arguments.files)
        }
    }
}

fn open_window(files: Vec<PathBuf>) -> ExitCode {
    display::choose_renderer();
    if let Err(reason) = display::can_open_window() {
        say(&format!(
            "No window opens here, for {reason}. The chat is in the terminal instead."
        ));
        logging::to_stderr();
        return cli::converse(given_files::chosen(files));
    }
    let Some(folders) = Folders::of_user() else {
        say("goldcrest: no home folder was found; set GOLDCREST_DATA_DIR");
        return ExitCode::FAILURE;
    };
    // The window reports the fault of the folder, and needs no log for it.
    if folders::fault(&folders).is_some() {
        logging::to_stderr();
    } else if let Err(error) = logging::to_files(&folders.logs()) {
        say(&format!("goldcrest: {}: {error}", folders.logs().display()));
        logging::to_stderr();
    }
    match app::run(folders, files) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            say(&format!("goldcrest: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints to stderr; a terminal that is gone is no failure.
fn say(sentence: &str) {
    let _ = writeln!(visible::Visible(std::io::stderr()), "{sentence}");
}
