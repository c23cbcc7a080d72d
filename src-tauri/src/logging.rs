//! The log: a file a day in the data folder, seven kept; and stderr when RUST_LOG asks.

use std::io;
use std::path::{Path, PathBuf};

use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

const PREFIX: &str = "goldcrest";
const SUFFIX: &str = "log";
const DAYS_KEPT: usize = 7;

/// What the file holds unless RUST_LOG says otherwise.
const FILE_LEVEL: &str = "info";

/// Logs to stderr alone, when RUST_LOG is set. For the command line.
pub fn to_stderr() {
    tracing_subscriber::registry().with(stderr_layer()).init();
    log_panics();
}

/// Logs to a daily file in `folder`, and to stderr when RUST_LOG is set.
pub fn to_files(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let file = RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix(PREFIX)
        .filename_suffix(SUFFIX)
        .max_log_files(DAYS_KEPT)
        .build(folder)
        .map_err(io::Error::other)?;
    let file = fmt::layer().with_ansi(false).with_writer(file).with_filter(
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(FILE_LEVEL)),
    );
    tracing_subscriber::registry()
        .with(file)
        .with(stderr_layer())
        .init();
    log_panics();
    Ok(())
}

/// Today's file in `folder`; the appender counts days in UTC.
pub fn file_of_today(folder: &Path) -> PathBuf {
    let today = jiff::Timestamp::now()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date();
    folder.join(format!("{PREFIX}.{today}.{SUFFIX}"))
}

fn stderr_layer<S>() -> Option<impl Layer<S>>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    let filter = EnvFilter::try_from_default_env().ok()?;
    Some(fmt::layer().with_writer(io::stderr).with_filter(filter))
}

fn log_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tracing::error!("{panic}");
        before(panic);
    }));
}
