//! Choice and loading of the model file.

use std::io::Write;
use std::path::{Path, PathBuf};

use ::devices::{
    Choice, CrashMarkers, DeviceRequest, Devices, OpenModel, Opening, VARIABLE, device_from_env,
};
use chat::ModelChoice;
use engine::{CpuLevel, Engine, LoadOptions, ModelFile};
use host::{bundled_model, environment};

use super::args::{DeviceArg, ModelArgs, PlaceArgs};
use super::output::{self, CliError};
use super::progress::ProgressLine;
use crate::folders::Folders;

/// Returns the named file, or that of the environment, or the bundled model.
pub fn file(named: Option<&Path>) -> Result<PathBuf, CliError> {
    if let Some(file) = named {
        return Ok(file.to_owned());
    }
    match environment::model() {
        Some(file) if file.is_file() => Ok(file),
        Some(file) => Err(CliError::message(format!(
            "{}: there is no file {}",
            environment::MODEL,
            file.display()
        ))),
        None => bundled_model::file().ok_or_else(|| {
            CliError::message(
                "the small model that comes with Goldcrest is missing or damaged; get SmolLM3-3B with \
                 `goldcrest fetch SmolLM3-3B`, or name a file with --model",
            )
        }),
    }
}

/// Returns the model of a chat with these flags, and its file. The flags take precedence over the chat's settings from now
/// on.
pub fn for_chat(args: &ModelArgs) -> Result<(ModelChoice, PathBuf), CliError> {
    // The model's host would ignore an invalid variable.
    requested(&args.place)?;
    load_options(&args.place)?;
    args.place.flags().obey();
    let path = file(args.model.as_deref())?;
    let choice = if args.model.is_none() && environment::model().is_none() {
        ModelChoice::BundledModel
    } else {
        ModelChoice::File(path.clone())
    };
    Ok((choice, path))
}

/// Returns this machine's GPUs; `None` if there is no folder for their cache.
pub fn devices() -> Option<Devices> {
    let folder = Folders::of_user()?.data;
    let markers = CrashMarkers::new(&folder);
    Devices::new(&folder, markers, bundled_model::file())
}

/// A model with the devices that chose its placement.
pub struct LoadedModel {
    model: OpenModel,
    devices: Option<Devices>,
}

impl LoadedModel {
    /// Returns the engine, for facts about it.
    pub fn engine(&self) -> &Engine {
        &self.model.engine
    }

    /// Returns the reason for its device.
    pub fn device_reason(&self) -> String {
        self.model.explanation().to_string()
    }

    /// Runs work on it, so that a crash or a failure of a GPU is recorded for the next run.
    pub fn run<T>(&mut self, work: impl FnOnce(&mut Engine) -> T) -> T {
        self.model.run(self.devices.as_ref(), work)
    }
}

/// Loads a model.
pub fn open(args: &ModelArgs) -> Result<LoadedModel, CliError> {
    let path = file(args.model.as_deref())?;
    let file = ModelFile::open(&path).map_err(|error| CliError::file(&path, error))?;
    let options = load_options(&args.place)?;
    let request = requested(&args.place)?;
    let model = open_file(devices(), &file, &request, &options);
    let model = model.map_err(|error| CliError::file(&path, error))?;
    tell_of_format(&file);
    if options.context.is_some() {
        tell_of_context(model.engine().summary().context_note.as_deref());
    }
    Ok(model)
}

/// Loads a model that is not a file, on any requested GPU, checked or not.
pub fn open_unchecked(
    file: &ModelFile,
    request: &DeviceRequest,
    matrices: bool,
    options: &LoadOptions,
) -> Result<LoadedModel, engine::OpenError> {
    let choice = Choice::unchecked(request, matrices);
    let model = ::devices::load(None, choice, file, options, &mut |_| {})?;
    Ok(LoadedModel {
        model,
        devices: None,
    })
}

/// Loads a model whose file was read.
pub fn open_file(
    devices: Option<Devices>,
    file: &ModelFile,
    request: &DeviceRequest,
    options: &LoadOptions,
) -> Result<LoadedModel, engine::OpenError> {
    let mut bar = ProgressLine::new();
    let on_progress = &mut |step| match step {
        Opening::Checking => tell_of_check(),
        Opening::Loading(share) => bar.show("Loading the model", (share * 1000.0) as u64, 1000),
    };
    let model = ::devices::open(devices.as_ref(), file, request, options, on_progress)?;
    bar.clear();
    Ok(LoadedModel { model, devices })
}

/// Prints what is uncertain about the chat format of a model.
pub fn tell_of_format(file: &ModelFile) {
    let format = file.summary().protocol;
    if !format.is_certain() {
        // A terminal that is gone is no failure.
        let _ = writeln!(output::stderr(), "Chat format: {format}.");
    }
}

/// Prints how the context differs from the requested or the trained one.
pub fn tell_of_context(note: Option<&str>) {
    if let Some(note) = note {
        // A terminal that is gone is no failure.
        let _ = writeln!(output::stderr(), "{note}");
    }
}

/// Prints that a GPU check is running.
pub fn tell_of_check() {
    // A terminal that is gone is no failure.
    let _ = writeln!(
        output::stderr(),
        "Checking the GPU, once for this model and driver…"
    );
}

/// Returns the device of the flags, else of the environment.
pub fn requested(place: &PlaceArgs) -> Result<DeviceRequest, CliError> {
    match &place.device {
        Some(DeviceArg::Engine(device)) => Ok(device.clone()),
        Some(DeviceArg::Reference) => Err(CliError::message(
            "`reference` answers `goldcrest ask` alone",
        )),
        None => device_from_env(DeviceRequest::Auto)
            .map_err(|error| CliError::message(format!("{VARIABLE}: {error}"))),
    }
}

pub fn load_options(place: &PlaceArgs) -> Result<LoadOptions, CliError> {
    let level = CpuLevel::detect()
        .map_err(|error| CliError::message(format!("{}: {error}", CpuLevel::VARIABLE)))?;
    let usual = LoadOptions::default();
    Ok(LoadOptions {
        threads: threads(place.threads)?,
        context: context(place.context)?,
        cpu_level: Some(level),
        kv: place.kv.unwrap_or(usual.kv),
        ..usual
    })
}

/// Returns the CPU threads of the flag, else of the environment.
pub fn threads(flag: Option<u16>) -> Result<Option<usize>, CliError> {
    if let Some(threads) = flag {
        return Ok(Some(usize::from(threads)));
    }
    let threads = environment::threads().map_err(|error| CliError::message(error.to_string()))?;
    Ok(threads.map(|threads| threads as usize))
}

/// Returns the length of the context of the flag, else of the environment.
pub fn context(flag: Option<u32>) -> Result<Option<usize>, CliError> {
    let length = match flag {
        Some(length) => Some(length),
        None => environment::context().map_err(|error| CliError::message(error.to_string()))?,
    };
    Ok(length.map(|length| length as usize))
}

#[cfg(test)]
mod tests {
    use engine::KvType;

    use super::*;

    #[test]
    fn every_flag_of_loading_reaches_the_engine() {
        let device = DeviceRequest::Gpu(Some("0000:01:00.0".to_owned()));
        let flags = PlaceArgs {
            device: Some(DeviceArg::Engine(device.clone())),
            threads: Some(5),
            context: Some(1234),
            kv: Some(KvType::Q8_0),
        };
        let options = load_options(&flags).map_err(|error| error.to_string());
        let options = options.expect("a level");
        assert_eq!(requested(&flags).ok(), Some(device));
        assert_eq!((options.threads, options.kv), (Some(5), KvType::Q8_0));
        assert_eq!(options.cpu_level, CpuLevel::detect().ok());
        assert_eq!(options.context, Some(1234));

        let reference = PlaceArgs {
            device: Some(DeviceArg::Reference),
            ..PlaceArgs::default()
        };
        assert!(requested(&reference).is_err());

        let options = load_options(&PlaceArgs::default()).map_err(|error| error.to_string());
        let options = options.expect("a level");
        assert_eq!((options.kv, options.context), (KvType::F16, None));
        assert_eq!(options.threads, None);
        // The tests may be run with the variable set.
        if std::env::var_os(VARIABLE).is_none() {
            let request = requested(&PlaceArgs::default()).ok();
            assert_eq!(request, Some(DeviceRequest::Auto));
        }
    }
}
