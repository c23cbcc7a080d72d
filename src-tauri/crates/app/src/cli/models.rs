//! `goldcrest models`: the known models and the files on this computer.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::path::Path;

use ::models::{
    Authenticity, Bandwidth, EntrySources, Facts, Fit, FoundFile, Machine, Manifest, ModelEntry,
    ModelSearch,
};
use chat::Settings;
use figures::{count, tokens};

use super::args::{ModelsArgs, PlaceArgs};
use super::folders::data_folder;
use super::load;
use super::output::{self, CliError};
use crate::models::{ModelPlaces, machine_name, settings_name};
use crate::visible::on_one_line;

/// Returns the model files on this computer.
pub fn here() -> Result<Vec<FoundFile>, CliError> {
    let places = places()?;
    let facts = Facts::read(&places.facts_file());
    Ok(places.search(&ModelSearch::default(), None, &facts)())
}

fn places() -> Result<ModelPlaces, CliError> {
    Ok(ModelPlaces::of_user(&data_folder()?))
}

pub fn run(args: &ModelsArgs) -> Result<(), CliError> {
    let places = places()?;
    let manifest = Manifest::embedded();
    let mut facts = Facts::read(&places.facts_file());
    // The folder that the app searches, which it stores beside the facts about files.
    let folder = facts.folder().map(Path::to_owned);
    let found = places.search(&ModelSearch::default(), folder.as_deref(), &facts)();
    check(&manifest, &found, &mut facts);
    let machine = machine(&places, &mut facts)?;
    let sources = EntrySources {
        manifest: &manifest,
        found: &found,
        facts: &facts,
        machine: &machine,
        machine_name: &settings_name(&Settings::default().load_options()),
        open: None,
        hashing: &HashMap::new(),
        downloads: &BTreeMap::new(),
        endpoint: &places.endpoint,
    };
    let entries = sources.entries();
    if args.json {
        return output::json(&entries);
    }
    let mut out = output::stdout();
    for entry in &entries {
        write(&mut out, entry)?;
    }
    Ok(out.flush()?)
}

/// Computes the SHA-256 of files that may be official, once for each stamp.
fn check(manifest: &Manifest, found: &[FoundFile], facts: &mut Facts) {
    for file in found {
        let is_candidate = manifest.has_size(file.stamp.bytes);
        let is_hashed = facts.of(&file.stamp).is_some_and(|it| it.sha256.is_some());
        if !is_candidate || is_hashed {
            continue;
        }
        match ::models::sha256(&file.stamp, &mut |_| {}) {
            Ok(sha256) => facts.update(&file.stamp, |facts| facts.sha256 = sha256),
            Err(error) => tracing::warn!(file = %file.path.display(), %error, "not hashed"),
        }
    }
}

/// Returns this computer with the settings of the environment; its memory bandwidth is measured once.
fn machine(places: &ModelPlaces, facts: &mut Facts) -> Result<Machine, CliError> {
    let options = load::load_options(&PlaceArgs::default())?;
    let name = machine_name(&options);
    if facts.bandwidth(&name).is_none() {
        let bytes_per_second = (places.bandwidth)(engine::machine::threads(options.threads));
        if bytes_per_second.is_finite() {
            facts.set_bandwidth(Bandwidth {
                machine: name.clone(),
                bytes_per_second,
            });
        }
    }
    Ok(Machine {
        bandwidth: facts.bandwidth(&name),
        reached: facts.reached(&settings_name(&Settings::default().load_options())),
        available: engine::process::available(),
        options,
    })
}

fn write(out: &mut impl Write, entry: &ModelEntry) -> io::Result<()> {
    let authenticity = match entry.authenticity {
        Authenticity::Official => ", official",
        Authenticity::Unchecked => ", not checked",
        Authenticity::Unlisted => "",
    };
    let (name, quantisation) = (on_one_line(&entry.name), on_one_line(&entry.quantisation));
    let megabytes = count(usize::try_from(entry.bytes.div_ceil(1_000_000)).unwrap_or(usize::MAX));
    writeln!(out, "{name} {quantisation}, {megabytes} MB{authenticity}")?;
    match (&entry.file, entry.place, &entry.address) {
        (Some(file), Some(place), _) => writeln!(out, "  {}: {}", place.name(), on_one_line(file))?,
        (_, _, Some(address)) => writeln!(out, "  not here; {address}")?,
        _ => {}
    }
    for sentence in entry.problem.iter().chain(&entry.note) {
        writeln!(out, "  {}", on_one_line(sentence))?;
    }
    if let Some(forecast) = &entry.forecast {
        let memory = count(usize::try_from(forecast.memory_bytes >> 20).unwrap_or(usize::MAX));
        let context = tokens(forecast.context_length as usize);
        let fit = match forecast.fit {
            Fit::Fits => "fits",
            Fit::Slow => "fits, slow",
            Fit::DoesNotFit => "does not fit in the free memory",
        };
        write!(
            out,
            "  {memory} MiB of memory with a context of {context}: {fit}"
        )?;
        if let Some(rate) = forecast.tokens_per_second {
            let how = if forecast.measured {
                "measured"
            } else {
                "estimated"
            };
            write!(out, "; about {rate:.0} tokens/s, {how}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}
