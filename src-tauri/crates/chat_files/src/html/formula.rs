//! Formulas: TeX to MathML.

use pulldown_latex::config::DisplayMode;
use pulldown_latex::{Parser, RenderConfig, Storage, push_mathml};

use super::escaped::escaped;

/// Longer ones are no formula that anybody wrote.
const LONGEST: usize = 2000;

/// A formula as MathML, or its source where it is none.
pub(super) fn formula(tex: &str, display: bool) -> String {
    let made = (tex.len() <= LONGEST)
        .then(|| mathml(tex, display))
        .flatten();
    match (made, display) {
        (Some(made), true) => format!("<div class=\"formula\">{made}</div>\n"),
        (Some(made), false) => made,
        (None, true) => format!("<pre class=\"formula-open\">{}</pre>\n", escaped(tex)),
        (None, false) => format!("<code>{}</code>", escaped(tex)),
    }
}

fn mathml(tex: &str, display: bool) -> Option<String> {
    let storage = Storage::new();
    let events = Parser::new(tex, &storage)
        .collect::<Result<Vec<_>, _>>()
        .ok()?;
    let mode = if display {
        DisplayMode::Block
    } else {
        DisplayMode::Inline
    };
    let config = RenderConfig {
        display_mode: mode,
        ..RenderConfig::default()
    };
    let mut written = String::new();
    let events = events.into_iter().map(Ok::<_, std::convert::Infallible>);
    push_mathml(&mut written, events, config).ok()?;
    Some(written)
}
