//! The data folder of a subcommand.

use super::output::CliError;
use crate::folders::{self, Folders};

/// Returns the folder of the chats. One that was moved to a disk that is not connected is an error: it must not be
/// created again, empty.
pub fn data_folder() -> Result<Folders, CliError> {
    let folders = Folders::of_user()
        .ok_or_else(|| CliError::message("no home folder was found; set GOLDCREST_DATA_DIR"))?;
    match folders::fault(&folders) {
        Some(fault) => Err(CliError::message(fault)),
        None => Ok(folders),
    }
}
