//! Chats as one HTML page that looks like the app: its own style sheets, no script, no external resources.

mod answers;
mod escaped;
mod guard;

use std::io::{self, Write};

use figures::without_bidi_controls;
use store::{Part, Role, WholeChat};

pub(crate) use self::answers::Answers;
use self::escaped::escaped;
use crate::options::WriteOptions;
use crate::shown::{Shown, author, branch, called, days, ending, thought};

/// Style sheets of the window: colours and sizes, answers, formulas, code. The last one is for documents only.
const STYLES: [&str; 6] = [
    include_str!("../../../../ui/src/styles/tokens.css"),
    include_str!("../../../../ui/src/styles/answer.css"),
    include_str!("../../../../ui/src/styles/math.css"),
    include_str!("../../../../ui/src/styles/code.css"),
    include_str!("../../../../ui/src/styles/document.css"),
    include_str!("html/page.css"),
];

/// Begins the page; with a list of the chats if there are several.
pub(crate) fn begin(out: &mut dyn Write, titles: &[String]) -> io::Result<()> {
    let title = match titles {
        [one] => one.as_str(),
        _ => "Chats",
    };
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n<meta name=\"generator\" content=\"Goldcrest\">\n\
         <title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main class=\"document\">\n",
        plain(title),
        STYLES.concat()
    )?;
    if titles.len() > 1 {
        let count = figures::count(titles.len());
        write!(
            out,
            "<nav aria-label=\"Chats\">\n<h1>{count} chats</h1>\n<ol>\n"
        )?;
        for (at, title) in titles.iter().enumerate() {
            let at = at + 1;
            writeln!(
                out,
                "<li dir=\"auto\"><a href=\"#chat-{at}\">{}</a></li>",
                plain(title)
            )?;
        }
        write!(out, "</ol>\n</nav>\n")?;
    }
    Ok(())
}

/// Writes the chat at this index of the list.
pub(crate) fn chat(
    out: &mut dyn Write,
    at: usize,
    whole: &WholeChat,
    options: &WriteOptions,
    answers: &mut Answers,
) -> io::Result<()> {
    one(out, at, whole, options, answers, "")
}

fn one(
    out: &mut dyn Write,
    at: usize,
    whole: &WholeChat,
    options: &WriteOptions,
    answers: &mut Answers,
    unfolded: &str,
) -> io::Result<()> {
    let days = days(whole, &options.zone);
    write!(
        out,
        "<article class=\"chat\" id=\"chat-{}\">\n<header>\n<h1 dir=\"auto\">{}</h1>\n<p class=\"when\">{days}</p>\n</header>\n",
        at + 1,
        plain(&whole.chat.title)
    )?;
    for shown in branch(whole) {
        message(out, &shown, options, answers, unfolded)?;
    }
    writeln!(out, "</article>")
}

pub(crate) fn end(out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"</main>\n</body>\n</html>\n")
}

/// Writes one chat for a page that has the style sheets: the window prints it. Thinking is unfolded, because paper
/// cannot be clicked.
pub(crate) fn print(
    out: &mut dyn Write,
    whole: &WholeChat,
    options: &WriteOptions,
    answers: &mut Answers,
) -> io::Result<()> {
    one(out, 0, whole, options, answers, " open")
}

/// Writes a text that is neither markup nor Markdown.
fn plain(text: &str) -> String {
    escaped(&without_bidi_controls(text))
}

fn message(
    out: &mut dyn Write,
    shown: &Shown<'_>,
    options: &WriteOptions,
    answers: &mut Answers,
    unfolded: &str,
) -> io::Result<()> {
    let message = shown.message;
    let is_question = message.role == Role::User;
    let kind = if is_question {
        "question"
    } else {
        "answer-message"
    };
    let author = author(message.role);
    write!(
        out,
        "<section class=\"{kind}\">\n<h2 class=\"unseen\">{author}</h2>\n"
    )?;
    let folded = |title: &str, text: &str| {
        let (title, text) = (plain(title), plain(text));
        format!(
            "<details class=\"thinking\"{unfolded}><summary>{title}</summary><div dir=\"auto\">{text}</div></details>\n"
        )
    };
    for (at, part) in message.parts.0.iter().enumerate() {
        let part = match part {
            Part::Thinking { .. } if !options.thinking => continue,
            Part::Thinking { text } => folded(&thought(message, at), text.trim()),
            Part::Text { text } if is_question => {
                format!("<div class=\"bubble\" dir=\"auto\">{}</div>\n", plain(text))
            }
            Part::Text { text } => {
                format!("<div class=\"answer\">\n{}</div>\n", answers.html(text))
            }
            Part::ToolCall {
                name, arguments, ..
            } => folded(&called(name), arguments),
            Part::ToolResult { text, .. } => folded("Result", text),
        };
        out.write_all(part.as_bytes())?;
    }
    if let Some(words) = ending(message) {
        writeln!(out, "<p class=\"note\">{}</p>", escaped(words))?;
    }
    let when = shown.when(&options.zone);
    write!(out, "<p class=\"when\">{when}</p>\n</section>\n")
}
