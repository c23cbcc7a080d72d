//! The Markdown of answers as HTML, by the rules of the window: no HTML of the answer's own, links to plain addresses only,
//! and no images.

use pulldown_cmark::{
    Alignment, CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd,
};

use super::escaped::escaped;
use super::formula::formula;

/// What a link may begin with.
const SCHEMES: [&str; 3] = ["https://", "http://", "mailto:"];

/// An answer as HTML.
pub(crate) fn rendered(markdown: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_MATH;
    let source = with_dollars(markdown);
    let mut table = Table::default();
    let mut code: Option<String> = None;
    // For each link that is open, whether it is written.
    let mut links = Vec::new();
    let events = Parser::new_ext(&source, options).filter_map(|event| {
        let made = match event {
            Event::Html(text) | Event::InlineHtml(text) => return Some(Event::Text(text)),
            Event::Start(Tag::HtmlBlock) => "<p>".to_owned(),
            Event::End(TagEnd::HtmlBlock) => "</p>\n".to_owned(),
            Event::InlineMath(tex) => formula(&tex, false),
            Event::DisplayMath(tex) => formula(&tex, true),
            Event::Start(Tag::Heading { level, .. }) => format!("<h{}>", below(level)),
            Event::End(TagEnd::Heading(level)) => format!("</h{}>\n", below(level)),
            Event::Start(Tag::CodeBlock(kind)) => {
                code = Some(String::new());
                figure(&kind)
            }
            Event::Text(text) if code.is_some() => {
                code.get_or_insert_default().push_str(&text);
                return None;
            }
            Event::End(TagEnd::CodeBlock) => {
                let code = code.take().unwrap_or_default();
                format!("{}</code></pre></figure>\n", escaped(&code))
            }
            Event::Text(text) if !links.is_empty() => {
                return Some(Event::Text(without_deceptive(&text).into()));
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                let is_plain = SCHEMES.iter().any(|scheme| {
                    let begin = dest_url.get(..scheme.len());
                    begin.is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
                });
                links.push(is_plain);
                let address = escaped(&dest_url);
                if is_plain {
                    format!("<a href=\"{address}\" rel=\"noreferrer\">")
                } else {
                    String::new()
                }
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                let is_written = links.pop().unwrap_or(false);
                if is_written { "</a>" } else { "" }.to_owned()
            }
            event => return Some(table.cell(event)),
        };
        Some(Event::Html(CowStr::from(made)))
    });
    let mut written = String::new();
    pulldown_cmark::html::push_html(&mut written, events);
    written
}

/// The conversation has the first heading, a message the second.
fn below(level: HeadingLevel) -> usize {
    (level as usize + 2).min(6)
}

fn figure(kind: &CodeBlockKind<'_>) -> String {
    let language = match kind {
        CodeBlockKind::Fenced(info) => info.split_whitespace().next().unwrap_or(""),
        CodeBlockKind::Indented => "",
    };
    let name = if language.is_empty() {
        "Text"
    } else {
        language
    };
    format!(
        "<figure class=\"code\"><figcaption>{}</figcaption><pre><code>",
        escaped(name)
    )
}

/// Tables are written here, as cells are aligned by an attribute: the window allows no styles in an answer.
#[derive(Default)]
struct Table {
    alignments: Vec<Alignment>,
    column: usize,
    in_head: bool,
}

impl Table {
    fn cell<'a>(&mut self, event: Event<'a>) -> Event<'a> {
        let made = match event {
            Event::Start(Tag::Table(alignments)) => {
                self.alignments = alignments;
                "<div class=\"table\" tabindex=\"0\"><table>\n".to_owned()
            }
            Event::Start(Tag::TableHead) => {
                (self.in_head, self.column) = (true, 0);
                "<thead><tr>".to_owned()
            }
            Event::End(TagEnd::TableHead) => {
                self.in_head = false;
                "</tr></thead><tbody>\n".to_owned()
            }
            Event::Start(Tag::TableRow) => {
                self.column = 0;
                "<tr>".to_owned()
            }
            Event::Start(Tag::TableCell) => {
                let alignment = self.alignments.get(self.column);
                self.column += 1;
                let side = match alignment {
                    Some(Alignment::Left) => " align=\"left\"",
                    Some(Alignment::Center) => " align=\"center\"",
                    Some(Alignment::Right) => " align=\"right\"",
                    Some(Alignment::None) | None => "",
                };
                format!("<{}{side}>", self.cell_name())
            }
            Event::End(TagEnd::TableCell) => format!("</{}>", self.cell_name()),
            Event::End(TagEnd::TableRow) => "</tr>\n".to_owned(),
            Event::End(TagEnd::Table) => "</tbody></table></div>\n".to_owned(),
            event => return event,
        };
        Event::Html(made.into())
    }

    fn cell_name(&self) -> &'static str {
        if self.in_head { "th" } else { "td" }
    }
}

/// Without the characters that reorder or hide text, and so make an address look like another one.
fn without_deceptive(text: &str) -> String {
    let deceives = |character: &char| {
        matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{e0000}'..='\u{e0fff}')
    };
    text.chars()
        .filter(|character| !deceives(character))
        .collect()
}

/// `\(…\)` and `\[…\]`, which models write and Markdown does not know, as formulas between dollar signs; not in code.
fn with_dollars(text: &str) -> String {
    if !text.contains("\\(") && !text.contains("\\[") {
        return text.to_owned();
    }
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['`', '\\']) {
        written.push_str(&rest[..at]);
        rest = &rest[at..];
        let (taken, made) = code_at(rest).or_else(|| math_at(rest)).unwrap_or_else(|| {
            // A mark by itself, or a character that is escaped.
            let escaped = usize::from(rest.starts_with('\\'));
            let taken: usize = rest.chars().take(1 + escaped).map(char::len_utf8).sum();
            (taken, rest[..taken].to_owned())
        });
        written.push_str(&made);
        rest = &rest[taken..];
    }
    written + rest
}

/// Code that begins here: between as many backticks on both sides.
fn code_at(text: &str) -> Option<(usize, String)> {
    let ticks = text.len() - text.trim_start_matches('`').len();
    if ticks == 0 {
        return None;
    }
    let mut end = ticks;
    while let Some(at) = text[end..].find('`') {
        end += at;
        let found = text[end..].len() - text[end..].trim_start_matches('`').len();
        end += found;
        if found == ticks {
            return Some((end, text[..end].to_owned()));
        }
    }
    // A fence that is open to the end.
    let taken = if ticks >= 3 { text.len() } else { ticks };
    Some((taken, text[..taken].to_owned()))
}

/// A formula that begins here.
fn math_at(text: &str) -> Option<(usize, String)> {
    let (close, mark) = match text.get(..2)? {
        "\\(" => ("\\)", "$"),
        "\\[" => ("\\]", "$$"),
        _ => return None,
    };
    let length = text[2..].find(close)?;
    let tex = text[2..2 + length].trim();
    let is_formula = !tex.is_empty() && !tex.contains("\n\n") && !tex.contains('$');
    is_formula.then(|| (length + 4, format!("{mark}{tex}{mark}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_no_markup_of_its_own() {
        for (markdown, html) in [
            ("a <b>c</b>", "<p>a &lt;b&gt;c&lt;/b&gt;</p>\n"),
            (
                "<script>x()</script>",
                "<p>&lt;script&gt;x()&lt;/script&gt;</p>\n",
            ),
            ("[a](javascript:x)", "<p>a</p>\n"),
            ("[a](JAVASCRIPT:x)", "<p>a</p>\n"),
            ("[a](data:text/html,x)", "<p>a</p>\n"),
            (
                "[a\u{202e}b](https://x.org/?a=1&b=\"2)",
                "<p><a href=\"https://x.org/?a=1&amp;b=&quot;2\" rel=\"noreferrer\">ab</a></p>\n",
            ),
            (
                "![cat](https://x.org/c.png)",
                "<p><a href=\"https://x.org/c.png\" rel=\"noreferrer\">cat</a></p>\n",
            ),
            ("# One", "<h3>One</h3>\n"),
            ("~~x~~", "<p><del>x</del></p>\n"),
            (
                "```js\"><i>\n</code>\n```",
                "<figure class=\"code\"><figcaption>js&quot;&gt;&lt;i&gt;</figcaption><pre><code>&lt;/code&gt;\n</code></pre></figure>\n",
            ),
            (
                "|a|b|\n|-|-:|\n|1|<i>|",
                "<div class=\"table\" tabindex=\"0\"><table>\n<thead><tr><th>a</th><th align=\"right\">b</th></tr></thead><tbody>\n<tr><td>1</td><td align=\"right\">&lt;i&gt;</td></tr>\n</tbody></table></div>\n",
            ),
        ] {
            assert_eq!(rendered(markdown), html, "{markdown}");
        }
    }

    #[test]
    fn a_formula_is_mathml_and_what_is_none_stays_as_it_is() {
        for formula in [
            "$a^2$",
            "\\(a^2\\)",
            "$$a^2$$",
            "\\[\na^2\n\\]",
            "\\( a^2 \\)",
        ] {
            let html = rendered(formula);
            assert!(
                html.contains("<math") && html.contains("<mn>2</mn>"),
                "{formula}: {html}"
            );
        }
        for other in [
            "$5 and $10",
            "`\\(a\\)`",
            "```\n\\(a\\)\n```",
            "\\\\(a\\\\)",
        ] {
            assert!(
                !rendered(other).contains("<math"),
                "{other}: {}",
                rendered(other)
            );
        }
        for hostile in [
            "$\\text{<script>x</script>}$",
            "$\\href{javascript:x}{<b>}$",
            "$<img src=x onerror=y>$",
        ] {
            let html = rendered(hostile);
            assert!(
                !html.contains("<script") && !html.contains("<img") && !html.contains("<b>"),
                "{html}"
            );
            assert!(!html.contains("javascript:x\""), "{html}");
        }
        assert!(rendered("$\\nonsense{$").contains("nonsense"));
    }
}
