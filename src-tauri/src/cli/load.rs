//! Which file is meant, and loading it.

use std::path::{Path, PathBuf};

use engine::{CpuLevel, Engine, LoadOptions};

use super::{CliError, ModelArgs, PlaceArgs};
use crate::{device, starter};

/// The named file, or the starter.
pub fn file(named: Option<&Path>) -> Result<PathBuf, CliError> {
    match named {
        Some(file) => Ok(file.to_owned()),
        None => starter::file().ok_or_else(|| {
            CliError::message("the starter model is not beside the program; name one with --model")
        }),
    }
}

/// Loads a model.
pub fn open(args: &ModelArgs) -> Result<Engine, CliError> {
    let file = file(args.model.as_deref())?;
    Engine::open(&file, &load_options(&args.place)?, &mut |_| {})
        .map_err(|error| CliError::file(&file, error))
}

pub fn load_options(place: &PlaceArgs) -> Result<LoadOptions, CliError> {
    let device = match place.device {
        Some(device) => device,
        None => device::requested(engine::DeviceRequest::Auto)
            .map_err(|error| CliError::message(format!("{}: {error}", device::VARIABLE)))?,
    };
    let level = CpuLevel::detect()
        .map_err(|error| CliError::message(format!("{}: {error}", CpuLevel::VARIABLE)))?;
    let usual = LoadOptions::default();
    Ok(LoadOptions {
        device,
        threads: place.threads.map(usize::from),
        cpu_level: Some(level),
        kv: place.kv.unwrap_or(usual.kv),
        software_gpu: device::software_gpu(),
        ..usual
    })
}
