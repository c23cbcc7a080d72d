//! The app without its window. The shell opens the window over it, and the command line uses it as it is.

pub mod cli;
pub mod data_folder;
pub mod data_lock;
pub mod data_pointer;
pub mod exporting;
pub mod file_names;
pub mod folders;
pub mod importing;
pub mod local_api;
pub mod logging;
pub mod lost_folder;
pub mod model_check;
pub mod models;
pub mod network_check;
mod reference_process;
pub mod startup;
pub mod tool_servers;
pub mod tools;
mod verify;
pub mod visible;
pub mod wire;
pub mod worker;
