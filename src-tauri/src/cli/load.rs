//! Which file is meant, and loading it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chat::Opening;
use engine::{CpuLevel, Engine, LoadOptions, TemplateSandbox, TemplateUse};

use super::progress::Progress;
use super::{CliError, ModelArgs, PlaceArgs};
use crate::crash_marker::CrashMarkers;
use crate::folders::Folders;
use crate::gpus::{self, Gpu, Gpus, Opened, watched};
use crate::{demo_model, device, sandbox};

/// The named file, or the demo model.
pub fn file(named: Option<&Path>) -> Result<PathBuf, CliError> {
    match named {
        Some(file) => Ok(file.to_owned()),
        None => demo_model::file().ok_or_else(|| {
            CliError::message("the demo model is not beside the program; name one with --model")
        }),
    }
}

/// What is known of this machine's GPUs; none where there is no folder to remember it in.
pub fn gpus() -> Option<Gpus> {
    let folder = Folders::of_user()?.data;
    let markers = CrashMarkers::new(&folder);
    Gpus::new(&folder, markers)
}

/// A model, and the GPU that it may be on.
pub struct Model {
    pub engine: Engine,
    gpus: Option<Gpus>,
    gpu: Option<Gpu>,
}

impl Model {
    /// One of which nothing is to be remembered.
    pub fn unwatched(engine: Engine) -> Self {
        Self {
            engine,
            gpus: None,
            gpu: None,
        }
    }

    /// Lets it work, so that a GPU over which this process dies, or which fails, is known by the next.
    pub fn watched<T>(&mut self, work: impl FnOnce(&mut Engine) -> T) -> T {
        watched(self.gpus.as_ref(), &mut self.gpu, &mut self.engine, work)
    }
}

/// Loads a model.
pub fn open(args: &ModelArgs) -> Result<Model, CliError> {
    let file = file(args.model.as_deref())?;
    let options = LoadOptions {
        sandbox: sandbox(args.own_template)?,
        ..load_options(&args.place)?
    };
    let gpus = gpus();
    let mut bar = Progress::new();
    let on_progress = &mut |progress| match progress {
        Opening::Checking => tell_of_check(),
        Opening::Loading(share) => bar.show("Loading the model", (share * 1000.0) as u64, 1000),
    };
    let Opened { engine, gpu, .. } = gpus::open(gpus.as_ref(), &file, options, on_progress)
        .map_err(|error| CliError::file(&file, error))?;
    bar.clear();
    tell_of_template(engine.template().origin());
    Ok(Model { engine, gpus, gpu })
}

/// Where a chat template of unknown text runs, if one is wanted.
pub fn sandbox(wanted: bool) -> Result<Option<Arc<dyn TemplateSandbox>>, CliError> {
    wanted
        .then(sandbox::of_this_program)
        .transpose()
        .map_err(|error| CliError::message(format!("the chat template cannot be run: {error}")))
}

/// Says that a file's chat template is not used.
pub fn tell_of_template(origin: TemplateUse) {
    if origin == TemplateUse::Unknown {
        // A terminal that is gone needs no words.
        let _ = writeln!(
            io::stderr(),
            "The file's chat template is unknown: the built-in SmolLM3 protocol is used (--own-template uses the file's)."
        );
    }
}

/// Says what takes so long.
pub fn tell_of_check() {
    // A terminal that is gone needs no words.
    let _ = writeln!(
        io::stderr(),
        "Trying a GPU, once for this model and driver…"
    );
}

pub fn load_options(place: &PlaceArgs) -> Result<LoadOptions, CliError> {
    let device = match &place.device {
        Some(device) => device.clone(),
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

#[cfg(test)]
mod tests {
    use engine::{DeviceRequest, KvType};

    use super::*;

    #[test]
    fn every_flag_of_loading_reaches_the_engine() {
        let flags = PlaceArgs {
            device: Some(DeviceRequest::Gpu(Some("0000:01:00.0".to_owned()))),
            threads: Some(5),
            kv: Some(KvType::Q8_0),
        };
        let options = load_options(&flags).map_err(|error| error.to_string());
        let options = options.expect("a level");
        assert_eq!(Some(options.device), flags.device);
        assert_eq!((options.threads, options.kv), (Some(5), KvType::Q8_0));
        assert_eq!(options.cpu_level, CpuLevel::detect().ok());
        assert!(options.context.is_none() && options.sandbox.is_none());

        let options = load_options(&PlaceArgs::default()).map_err(|error| error.to_string());
        let options = options.expect("a level");
        assert_eq!((options.threads, options.kv), (None, KvType::F16));
        // A run of the tests may have the variable set.
        if std::env::var_os(device::VARIABLE).is_none() {
            assert_eq!(options.device, DeviceRequest::Auto);
        }
    }

    #[test]
    fn a_sandbox_is_there_only_where_it_is_wanted() {
        let is_there = |wanted| sandbox(wanted).is_ok_and(|sandbox| sandbox.is_some());
        assert_eq!((is_there(true), is_there(false)), (true, false));
    }
}
