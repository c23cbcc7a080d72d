//! The log: a daily file in the data folder, seven kept; and stderr if RUST_LOG is set.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use jiff::civil::Date;
use system::private;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

use crate::visible::on_one_line;

const PREFIX: &str = "goldcrest";
const SUFFIX: &str = "log";
const DAYS_KEPT: usize = 7;

/// Level of the file, whatever RUST_LOG sets for stderr: the file stays on the disk. rmcp logs whole messages of servers,
/// which may be private.
const FILE_LEVEL: &str = "info,rmcp=off";

/// Logs only to stderr, if RUST_LOG is set. For the command line.
pub fn to_stderr() {
    tracing_subscriber::registry().with(stderr_layer()).init();
    log_panics();
}

/// Logs to a daily file in `folder`, and to stderr if RUST_LOG is set.
pub fn to_files(folder: &Path) -> io::Result<()> {
    private::folder(folder)?;
    let file = DailyFile::open(folder, today())?;
    let file = fmt::layer()
        .with_ansi(false)
        .with_writer(Mutex::new(EventLines(file)))
        .with_filter(EnvFilter::new(FILE_LEVEL));
    tracing_subscriber::registry()
        .with(file)
        .with(stderr_layer())
        .init();
    log_panics();
    Ok(())
}

/// Returns today's file in `folder`.
pub fn file_of_today(folder: &Path) -> PathBuf {
    file_of(folder, today())
}

fn file_of(folder: &Path, day: Date) -> PathBuf {
    folder.join(format!("{PREFIX}.{day}.{SUFFIX}"))
}

/// Returns the date in UTC.
fn today() -> Date {
    chat::now()
        .timestamp()
        .to_zoned_datetime(jiff::tz::TimeZone::UTC)
        .date()
}

/// Writer of a line per event: a file name in it can neither begin another line nor control the terminal that shows it.
struct EventLines<W>(W);

impl<W: Write> Write for EventLines<W> {
    /// Writes a complete event.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = on_one_line(text.strip_suffix('\n').unwrap_or(&text));
        self.0.write_all(format!("{line}\n").as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A daily file that only its user may read: tracing-appender's has no control over its mode.
struct DailyFile {
    folder: PathBuf,
    day: Date,
    file: File,
}

impl DailyFile {
    fn open(folder: &Path, day: Date) -> io::Result<Self> {
        let file = file_of(folder, day);
        private::file(&file)?;
        let file = File::options().append(true).open(file)?;
        remove_old(folder);
        Ok(Self {
            folder: folder.to_owned(),
            day,
            file,
        })
    }

    fn write_on(&mut self, day: Date, line: &[u8]) -> io::Result<usize> {
        if day != self.day {
            *self = Self::open(&self.folder, day)?;
        }
        self.file.write(line)
    }
}

impl Write for DailyFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.write_on(today(), line)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Removes all but the latest files.
fn remove_old(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    let is_log = |name: &str| {
        let day = name
            .strip_prefix(PREFIX)
            .and_then(|it| it.strip_suffix(SUFFIX));
        day.is_some_and(|day| day.trim_matches('.').parse::<Date>().is_ok())
    };
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let mut logs: Vec<String> = names.filter(|name| is_log(name)).collect();
    logs.sort_unstable();
    for name in &logs[..logs.len().saturating_sub(DAYS_KEPT)] {
        // A file that cannot be removed stays.
        let _ = std::fs::remove_file(folder.join(name));
    }
}

fn stderr_layer<S>() -> Option<impl Layer<S>>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    let filter = EnvFilter::try_from_default_env().ok()?;
    let lines = fmt::layer()
        .with_ansi(false)
        .with_writer(|| EventLines(io::stderr()));
    Some(lines.with_filter(filter))
}

fn log_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let at = panic.location().map(ToString::to_string);
        tracing::error!(at, "panicked: {}", without_quotes(panic.payload_as_str()));
        before(panic);
    }));
}

/// Removes the quoted text from a panic about a character boundary, which may be a chat's.
fn without_quotes(panic: Option<&str>) -> &str {
    let message = panic.unwrap_or("unknown cause");
    message.split(" of `").next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn an_event_is_one_line_whatever_is_named_in_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = DailyFile::open(folder.path(), today()).expect("opened");
        let layer = fmt::layer()
            .with_ansi(false)
            .with_writer(Mutex::new(EventLines(file)));
        let name = "x\0\u{1b}]0;t\u{7}\n2026-01-01T00:00:00Z  INFO forged\u{202e}";
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::warn!(file = %name, "{name}");
        });
        let text = std::fs::read_to_string(file_of_today(folder.path())).expect("UTF-8");
        assert_eq!(text.lines().count(), 1, "{text:?}");
        let line = text.strip_suffix('\n').expect("it ends");
        assert!(!line.contains(figures::is_obeyed), "{line:?}");
        assert_eq!(line.matches("\\u{202e}").count(), 2, "{line}");
    }

    #[test]
    fn a_panic_in_the_log_does_not_quote_a_text() {
        let text = std::hint::black_box("ärger mit Otto");
        let cut = std::panic::catch_unwind(|| text[1..].len()).expect_err("it panics");
        let message = cut.downcast_ref::<String>().expect("a message");
        assert!(message.contains("Otto"), "{message}");
        let logged = without_quotes(Some(message));
        assert!(
            logged.contains("char boundary") && !logged.contains("Otto"),
            "{logged}"
        );
    }

    #[test]
    fn there_is_a_private_file_a_day_and_seven_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let other = folder.path().join("goldcrest.notes.log");
        std::fs::write(&other, "mine").expect("written");
        let mut log = DailyFile::open(folder.path(), date(2026, 3, 1)).expect("opened");
        for day in 1..=9 {
            let day = date(2026, 3, day);
            for line in ["one\n", "two\n"] {
                let written = log.write_on(day, line.as_bytes()).expect("written");
                assert_eq!(written, line.len());
            }
            let file = file_of(folder.path(), day);
            assert_eq!(std::fs::read_to_string(&file).expect("there"), "one\ntwo\n");
            #[cfg(unix)]
            {
                let permissions = file.metadata().expect("there").permissions();
                let mode = std::os::unix::fs::PermissionsExt::mode(&permissions);
                assert_eq!(mode & 0o777, 0o600);
            }
        }
        for day in 1..=9 {
            let kept = file_of(folder.path(), date(2026, 3, day)).exists();
            assert_eq!(kept, day > 2, "{day}");
        }
        assert!(other.exists());
        // A second start on the same day appends to its file.
        let last = date(2026, 3, 9);
        let mut log = DailyFile::open(folder.path(), last).expect("opened");
        log.write_on(last, b"three\n").expect("written");
        let text = std::fs::read_to_string(file_of(folder.path(), last));
        assert_eq!(text.expect("there"), "one\ntwo\nthree\n");
    }
}
