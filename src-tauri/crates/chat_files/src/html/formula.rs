//! Formulas: TeX to MathML.

use pulldown_latex::config::DisplayMode;
use pulldown_latex::event::{Content, Event};
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
    if events.iter().any(has_markup) {
        return None;
    }
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

/// Whether an event would be markup: the name of a function, as in `\operatorname{…}`, is the only text that is written as
/// it is. Other texts are escaped, numbers are digits, and all else is one character between two tags.
fn has_markup(event: &Event<'_>) -> bool {
    let Event::Content(Content::Function(name)) = event else {
        return false;
    };
    name.contains(['<', '>', '&'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_formula_writes_markup() {
        const MARKUP: &str = "<meta http-equiv=\"refresh\" content=\"0;url=https://evil.example\">";
        let commands = [
            "operatorname",
            "operatorname*",
            "mathop",
            "mathrm",
            "mathbf",
            "text",
            "textbf",
            "mbox",
            "mathord",
            "mathbin",
            "mathrel",
            "mathopen",
            "mathclose",
            "mathpunct",
            "mathinner",
            "sqrt",
            "not",
            "boxed",
            "color",
            "tag",
            "label",
            "href",
            "url",
            "begin",
            "hspace",
            "underbrace",
            "overset{x}",
            "phantom",
            "left",
            "big",
            "mathbb",
            "substack",
            "pmod",
            "unknown",
            "textcolor{red}",
            "colorbox{red}",
            "frac{x}",
            "xrightarrow",
        ];
        let mut formulas = vec![
            MARKUP.to_owned(),
            format!("\\verb|{MARKUP}|"),
            format!("x_{{{MARKUP}}}"),
        ];
        for command in commands {
            formulas.push(format!("\\{command}{{{MARKUP}}}"));
            formulas.push(format!("\\{command}{{<b>}}"));
            formulas.push(format!("\\{command}{{&lt;}}"));
        }
        for tex in formulas {
            for display in [false, true] {
                let written = formula(&tex, display);
                assert!(
                    !written.contains("<meta") && !written.contains("<b>"),
                    "{tex}: {written}"
                );
            }
        }
        for tex in ["\\operatorname{<b>}", "\\mathop{a&b}"] {
            assert!(formula(tex, false).starts_with("<code>"), "{tex}");
        }
        for tex in [
            "\\operatorname{rank} A",
            "\\mathop{arg\\,max} x",
            "\\sin x",
            "a < b",
        ] {
            assert!(formula(tex, false).starts_with("<math"), "{tex}");
        }
    }
}
