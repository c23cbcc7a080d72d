//! Progress of long work: a bar on stderr, if that is a terminal.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Delay before the bar is shown.
const DELAY: Duration = Duration::from_millis(300);
const STYLE: &str = "{msg} {bar:32} {percent} %";

pub struct ProgressLine {
    begun: Instant,
    bar: Option<ProgressBar>,
}

impl ProgressLine {
    pub fn new() -> Self {
        Self {
            begun: Instant::now(),
            bar: None,
        }
    }

    /// Shows `done` of `total`, labelled `what`.
    pub fn show(&mut self, what: impl Into<Cow<'static, str>>, done: u64, total: u64) {
        if self.begun.elapsed() < DELAY {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template(STYLE);
            bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        bar.set_message(what);
        bar.set_length(total);
        bar.set_position(done);
    }

    /// Shows at once that `what` has begun, whose progress is not known.
    pub fn begin(&mut self, what: &'static str) {
        if let Some(begun) = Instant::now().checked_sub(DELAY) {
            self.begun = begun;
        }
        self.show(what, 0, 1);
    }

    /// Removes the bar, before other output.
    pub fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_can_be_drawn_and_comes_only_where_it_is_worth_it() {
        assert!(ProgressStyle::with_template(STYLE).is_ok());
        let mut progress = ProgressLine::new();
        progress.show("Loading", 1, 2);
        assert!(progress.bar.is_none());
        progress.begun -= DELAY;
        progress.show("Loading", 1, 2);
        let bar = progress.bar.as_ref().expect("a bar");
        assert_eq!((bar.position(), bar.length()), (1, Some(2)));
        progress.clear();
        assert!(progress.bar.is_none());
        let mut progress = ProgressLine::new();
        progress.begin("Loading");
        assert!(progress.bar.is_some());
    }
}
