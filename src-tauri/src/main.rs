//! Goldcrest: a native window that chats with SmolLM3 offline, and the same model on the command line.
//!
//! This crate is the shell, the only code that names tauri: the window, its commands, the desktop. It holds no rules of
//! its own: a command goes to `chat`, or to the library `app`.

#![cfg_attr(all(windows, not(debug_assertions)), windows_subsystem = "windows")]

#[macro_use]
mod each_command;
mod applied_settings;
mod commands;
mod desktop;
mod display;
mod events;
mod file_dialogs;
mod given_files;
mod instance;
mod main_window;
mod preset_files;
mod reply;
mod shell;
mod transfers;
mod window;

#[cfg(test)]
mod bindings;
#[cfg(test)]
mod guide_names;
#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use app::folders::{self, Folders};
use app::{cli, logging, visible};
use models::model_among;
use system::limits;

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
        return cli::converse(model_among(files));
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
    match shell::run(folders, files) {
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
