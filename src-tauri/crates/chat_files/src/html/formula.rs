//! Formulas: TeX to MathML, in bounded time and space.

use std::io::{self, Write};

use pulldown_latex::config::DisplayMode;
use pulldown_latex::event::{Content, Event};
use pulldown_latex::{Parser, RenderConfig, Storage};

use super::escaped::escaped;

/// Bytes of a formula. Nobody wrote a longer one.
const LONGEST: usize = 2000;
/// Bytes of MathML that a formula may become, and all formulas of a message together.
const LARGEST: usize = 1 << 20;
const LARGEST_OF_MESSAGE: usize = 16 << 20;
/// Events of a formula.
const MOST_EVENTS: usize = 20_000;
/// Levels of groups.
const DEEPEST: usize = 100;
/// Commands in a row: where each is the argument of the one before it, the parser calls itself.
const MOST_IN_A_ROW: usize = 50;
/// Commands that define others. An expansion may have any length, and no answer needs one.
const DEFINITIONS: [&str; 6] = [
    "def",
    "let",
    "futurelet",
    "newcommand",
    "renewcommand",
    "providecommand",
];

/// The formulas of one message.
pub(super) struct Formulas {
    /// Bytes that they may still take.
    left: usize,
}

impl Formulas {
    pub fn of_message() -> Formulas {
        Formulas {
            left: LARGEST_OF_MESSAGE,
        }
    }

    /// A formula as MathML, or its source where it is none or becomes too large.
    pub fn html(&mut self, tex: &str, display: bool) -> String {
        let made = mathml(tex, display, self.left.min(LARGEST));
        self.left -= made.as_ref().map_or(0, String::len);
        match (made, display) {
            (Some(made), true) => format!("<div class=\"formula\">{made}</div>\n"),
            (Some(made), false) => made,
            (None, true) => format!("<pre class=\"formula-open\">{}</pre>\n", escaped(tex)),
            (None, false) => format!("<code>{}</code>", escaped(tex)),
        }
    }
}

/// A formula in at most `largest` bytes.
fn mathml(tex: &str, display: bool, largest: usize) -> Option<String> {
    if tex.len() > LONGEST || !is_bounded(tex) {
        return None;
    }
    let storage = Storage::new();
    let parser = Parser::new(tex, &storage);
    let events = parser.take(MOST_EVENTS).collect::<Result<Vec<_>, _>>();
    let events = events.ok()?;
    if events.len() == MOST_EVENTS || is_deep(&events) || events.iter().any(has_markup) {
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
    let mut written = Bounded {
        bytes: Vec::new(),
        largest,
    };
    let events = events.into_iter().map(Ok::<_, std::convert::Infallible>);
    pulldown_latex::write_mathml(&mut written, events, config).ok()?;
    String::from_utf8(written.bytes).ok()
}

/// True for a formula that defines nothing and has no long row of commands.
fn is_bounded(tex: &str) -> bool {
    let (mut rest, mut in_a_row) = (tex, 0);
    loop {
        rest = rest.trim_start();
        if let Some(comment) = rest.strip_prefix('%') {
            rest = comment.split_once('\n').map_or("", |(_, rest)| rest);
            continue;
        }
        let Some(command) = rest.strip_prefix('\\') else {
            let mut characters = rest.chars();
            if characters.next().is_none() {
                return true;
            }
            (rest, in_a_row) = (characters.as_str(), 0);
            continue;
        };
        in_a_row += 1;
        let after = command.trim_start_matches(|character: char| character.is_ascii_alphabetic());
        let name = &command[..command.len() - after.len()];
        if in_a_row > MOST_IN_A_ROW || DEFINITIONS.contains(&name) {
            return false;
        }
        // Without letters it is one character.
        let sign = after.chars().next().filter(|_| name.is_empty());
        rest = &after[sign.map_or(0, char::len_utf8)..];
    }
}

fn is_deep(events: &[Event<'_>]) -> bool {
    let mut depth = 0_usize;
    events.iter().any(|event| {
        match event {
            Event::Begin(_) => depth += 1,
            Event::End => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > DEEPEST
    })
}

/// Bytes up to a limit, beyond which a write fails.
struct Bounded {
    bytes: Vec<u8>,
    largest: usize,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.largest - self.bytes.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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

    fn formula(tex: &str, display: bool) -> String {
        Formulas::of_message().html(tex, display)
    }

    /// Half the stack of a thread of the program; an overflow would end the test.
    fn rendered_on_a_small_stack(tex: &str) -> String {
        let tex = tex.to_owned();
        let thread = std::thread::Builder::new().stack_size(1 << 20);
        let rendering = thread.spawn(move || formula(&tex, true)).expect("a thread");
        rendering.join().expect("no panic")
    }

    #[test]
    fn a_formula_that_defines_something_is_shown_as_its_source() {
        let nested = format!(
            "\\def\\a#1;{{{}}}\\def\\b#1;{{{}}}\\def\\c#1;{{{}}}\\a {};",
            "\\b #1 ".repeat(95),
            "\\c #1".repeat(95),
            "#1".repeat(250),
            "x".repeat(20),
        );
        let relaxed = format!(
            "\\def\\a{{{}}}\\def\\b{{{}}}\\b",
            "\\relax ".repeat(60),
            "\\a".repeat(90)
        );
        assert!(nested.len() <= LONGEST && relaxed.len() <= LONGEST);
        let mut formulas = vec![nested, relaxed];
        for definition in DEFINITIONS {
            formulas.push(format!("\\{definition}\\a{{b}}\\a"));
            formulas.push(format!("x % \\\n \\{definition} \\a b\\a"));
        }
        for tex in formulas {
            let written = rendered_on_a_small_stack(&tex);
            assert!(written.starts_with("<pre"), "{tex}");
            assert!(written.len() < 20_000, "{tex}");
        }
        // What begins alike, or stands behind a line break.
        for tex in ["a \\le b + \\delta", "\\begin{matrix}a\\\\def\\end{matrix}"] {
            assert!(formula(tex, true).contains("<math"), "{tex}");
        }
    }

    #[test]
    fn a_formula_is_bounded_in_depth_and_size() {
        let repeated = |before: &str, part: &str, after: &str| {
            let times = (LONGEST - before.len() - after.len()) / part.len();
            format!("{before}{}{after}", part.repeat(times))
        };
        let mut formulas = Vec::new();
        for part in [
            "\\hat",
            "\\sqrt",
            "\\frac",
            "\\not",
            "\\mathbf",
            "\\relax",
            "\\relax%x\n",
            "\\hat%x\n",
            "\\text",
            "\\,",
            "\\mathop",
            "\\left",
            "\\left(",
            "\\big",
            "\\binom",
            "\\overset",
            "\\substack",
            "\\boxed",
            "{",
            "x^{",
            "x_",
            "'",
            "\\hat{",
            "\\sqrt[",
            "\\frac{",
            "\\begin{matrix}",
            "\\left(\\frac{",
            "\\begingroup ",
            "^\\hat",
            "\\hat^",
            "\\limits",
            "\\middle|",
            "\\over",
            "\\rm",
            "\\color{red}",
            "\\hbox{",
            "\\text{$",
        ] {
            formulas.push(repeated("", part, ""));
            formulas.push(repeated("", part, "x"));
            let closed = (LONGEST - 1) / (part.len() + 1);
            formulas.push(format!("{}x{}", part.repeat(closed), "}".repeat(closed)));
        }
        // Each row is filled up to the number of columns.
        formulas.push(format!(
            "\\begin{{array}}{{{}}}{}\\end{{array}}",
            "c".repeat(900),
            "\\\\".repeat(500)
        ));
        for tex in formulas {
            let written = rendered_on_a_small_stack(&tex);
            assert!(written.len() <= LARGEST + 100, "{}: {tex}", written.len());
        }
        assert!(formula(&"{".repeat(50), false).starts_with("<code>"));
        let deep = |levels: usize| format!("{}x{}", "{".repeat(levels), "}".repeat(levels));
        assert!(formula(&deep(DEEPEST), false).starts_with("<math"));
        assert!(formula(&deep(DEEPEST + 1), false).starts_with("<code>"));
    }

    #[test]
    fn the_formulas_of_a_message_share_a_limit() {
        let mut formulas = Formulas::of_message();
        let tex = "x".repeat(LONGEST);
        let written: Vec<String> = (0..2000).map(|_| formulas.html(&tex, false)).collect();
        assert!(written[0].starts_with("<math"));
        assert!(written[1999].starts_with("<code>"));
        let mathml: usize = written
            .iter()
            .filter(|html| html.starts_with("<math"))
            .map(String::len)
            .sum();
        assert!(mathml <= LARGEST_OF_MESSAGE);
    }

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
