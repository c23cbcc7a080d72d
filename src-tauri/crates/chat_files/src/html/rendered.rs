//! The Markdown of answers as HTML, by the rules of the window: no HTML of the answer's own, links to plain addresses only,
//! and no images.

use std::borrow::Cow;

use pulldown_cmark::{
    Alignment, CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd,
};

use super::escaped::escaped;
use super::formula::Formulas;

/// Schemes of links to pages.
const WEB: [&str; 2] = ["https://", "http://"];
const MAIL: &str = "mailto:";

/// An answer as HTML.
pub(crate) fn rendered(markdown: &str) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_MATH;
    let source = with_dollars(markdown);
    let mut table = Table::default();
    let mut code: Option<String> = None;
    // For each link that is open, whether it is written.
    let mut links = Vec::new();
    let mut formulas = Formulas::of_message();
    let events = Parser::new_ext(&source, options).filter_map(|event| {
        let made = match event {
            Event::Html(text) | Event::InlineHtml(text) => return Some(Event::Text(text)),
            Event::Start(Tag::HtmlBlock) => "<p>".to_owned(),
            Event::End(TagEnd::HtmlBlock) => "</p>\n".to_owned(),
            Event::InlineMath(tex) => formulas.html(&tex, false),
            Event::DisplayMath(tex) => formulas.html(&tex, true),
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
                let address = address(&dest_url);
                links.push(address.is_some());
                let link =
                    |address| format!("<a href=\"{}\" rel=\"noreferrer\">", escaped(address));
                address.as_deref().map_or(String::new(), link)
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

/// The address of a link that may be written: of a page, or of a mail with no more than a subject and a body, as in the
/// window.
fn address(url: &str) -> Option<Cow<'_, str>> {
    let begins_with = |scheme: &&str| {
        let begin = url.get(..scheme.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
    };
    if WEB.iter().any(begins_with) {
        return Some(url.into());
    }
    if !begins_with(&MAIL) {
        return None;
    }
    let url = url.split('#').next().unwrap_or_default();
    let (to, fields) = url.split_once('?').unwrap_or((url, ""));
    let is_text = |field: &&str| {
        let name = field.split('=').next().unwrap_or_default();
        ["subject", "body"]
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known))
    };
    let kept: Vec<&str> = fields.split('&').filter(is_text).collect();
    if kept.is_empty() {
        return Some(to.into());
    }
    Some(format!("{to}?{}", kept.join("&")).into())
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
/// Takes time in proportion to the text, whatever is in it.
fn with_dollars(text: &str) -> String {
    if !text.contains("\\(") && !text.contains("\\[") {
        return text.to_owned();
    }
    let mut marks = Marks::of(text);
    let mut written = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(next) = text[at..].find(['`', '\\']) {
        written.push_str(&text[at..at + next]);
        at += next;
        if let Some(end) = marks.code_end(at) {
            written.push_str(&text[at..end]);
            at = end;
        } else if let Some(math) = marks.math(at) {
            for part in [math.mark, math.tex, math.mark] {
                written.push_str(part);
            }
            at = math.end;
        } else {
            // A mark by itself, or a character that is escaped.
            let escaped = usize::from(text[at..].starts_with('\\'));
            let taken = text[at..].chars().take(1 + escaped);
            let taken: usize = taken.map(char::len_utf8).sum();
            written.push_str(&text[at..at + taken]);
            at += taken;
        }
    }
    written + &text[at..]
}

/// The marks of a text that is scanned once. Each search remembers its result, so that no part of the text is searched for
/// the same mark twice.
struct Marks<'a> {
    text: &'a str,
    /// Set for one and two backticks when no code between them ends further on.
    is_open: [bool; 2],
    round: Closing<'a>,
    square: Closing<'a>,
    dollar: NextMark<'a>,
    empty_line: NextMark<'a>,
}

/// A formula between `\(` and `\)`, or `\[` and `\]`.
struct Math<'a> {
    mark: &'static str,
    tex: &'a str,
    /// Its end, behind the closing mark.
    end: usize,
}

impl<'a> Marks<'a> {
    fn of(text: &'a str) -> Self {
        Self {
            text,
            is_open: [false; 2],
            round: Closing::of(text, "\\)"),
            square: Closing::of(text, "\\]"),
            dollar: NextMark::of(text, "$"),
            empty_line: NextMark::of(text, "\n\n"),
        }
    }

    /// The end of code that begins here, between as many backticks on both sides.
    fn code_end(&mut self, begin: usize) -> Option<usize> {
        let run = |at: usize| {
            let text = &self.text[at..];
            text.len() - text.trim_start_matches('`').len()
        };
        let ticks = run(begin);
        if ticks == 0 {
            return None;
        }
        let mut end = begin + ticks;
        let is_open = self.is_open.get(ticks - 1);
        if is_open == Some(&true) {
            return Some(end);
        }
        while let Some(at) = self.text[end..].find('`') {
            let found = run(end + at);
            end += at + found;
            if found == ticks {
                return Some(end);
            }
        }
        match self.is_open.get_mut(ticks - 1) {
            Some(is_open) => {
                *is_open = true;
                Some(begin + ticks)
            }
            // A fence that is open to the end.
            None => Some(self.text.len()),
        }
    }

    /// The formula that begins here.
    fn math(&mut self, begin: usize) -> Option<Math<'a>> {
        let (mark, closing) = match self.text.get(begin..begin + 2)? {
            "\\(" => ("$", &mut self.round),
            "\\[" => ("$$", &mut self.square),
            _ => return None,
        };
        let (tex_end, close) = closing.from(begin + 2)?;
        let inside = &self.text[begin + 2..];
        let tex_begin = begin + 2 + inside.len() - inside.trim_start().len();
        let is_formula = tex_begin < tex_end
            && self.dollar.from(tex_begin).is_none_or(|at| at >= tex_end)
            && self
                .empty_line
                .from(tex_begin)
                .is_none_or(|at| at >= tex_end);
        is_formula.then(|| Math {
            mark,
            tex: &self.text[tex_begin..tex_end],
            end: close + 2,
        })
    }
}

/// Finds the next place of a mark from places that only move on.
struct NextMark<'a> {
    text: &'a str,
    mark: &'static str,
    /// The place that was found last; `None`: there is no further one.
    found: Option<usize>,
}

impl<'a> NextMark<'a> {
    fn of(text: &'a str, mark: &'static str) -> Self {
        let found = text.find(mark);
        Self { text, mark, found }
    }

    fn from(&mut self, place: usize) -> Option<usize> {
        if self.found? < place {
            let further = self.text[place..].find(self.mark);
            self.found = further.map(|at| place + at);
        }
        self.found
    }
}

/// The mark that ends a formula.
struct Closing<'a> {
    next: NextMark<'a>,
    /// The place that was found last, and the end of the text before it without blanks.
    found: Option<(usize, usize)>,
}

impl<'a> Closing<'a> {
    fn of(text: &'a str, mark: &'static str) -> Self {
        let next = NextMark::of(text, mark);
        Self { next, found: None }
    }

    /// The end of the formula without blanks, and the place of its mark.
    fn from(&mut self, place: usize) -> Option<(usize, usize)> {
        let close = self.next.from(place)?;
        let tex_end = match self.found {
            Some((known, tex_end)) if known == close => tex_end,
            _ => self.next.text[..close].trim_end().len(),
        };
        self.found = Some((close, tex_end));
        Some((tex_end, close))
    }
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
    fn a_mail_has_a_subject_and_a_body_and_no_more() {
        for (given, kept) in [
            ("mailto:a@b", Some("mailto:a@b")),
            ("mailto:a@b?attach=/etc/passwd", Some("mailto:a@b")),
            (
                "MAILTO:a@b?Subject=A%20b&attach=x&cc=c@d&body=x%26attach=y#z",
                Some("MAILTO:a@b?Subject=A%20b&body=x%26attach=y"),
            ),
            ("mailto:a@b?%61ttach=x&bcc=c@d", Some("mailto:a@b")),
            (
                "https://x.org/?attach=1#a",
                Some("https://x.org/?attach=1#a"),
            ),
            ("file:///etc/passwd", None),
            ("mailto", None),
        ] {
            assert_eq!(address(given).as_deref(), kept);
        }
        let html = rendered("[a](mailto:a@b?attach=/etc/passwd&subject=s)");
        assert!(html.contains("href=\"mailto:a@b?subject=s\""), "{html}");
    }

    /// The same as [`with_dollars`] without remembering anything.
    fn searched_again(text: &str) -> String {
        let mut written = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['`', '\\']) {
            written.push_str(&rest[..at]);
            rest = &rest[at..];
            let ticks = rest.len() - rest.trim_start_matches('`').len();
            let mut runs = Vec::new();
            let mut end = ticks;
            while let Some(at) = rest[end..].find('`').filter(|_| ticks > 0) {
                end += at;
                let run = rest[end..].len() - rest[end..].trim_start_matches('`').len();
                end += run;
                runs.push((run, end));
            }
            let code = runs
                .iter()
                .find(|(run, _)| *run == ticks)
                .map(|(_, end)| *end);
            let open = if ticks >= 3 { rest.len() } else { ticks };
            let marks = [("\\(", "\\)", "$"), ("\\[", "\\]", "$$")];
            let math = marks.iter().find_map(|(open, close, mark)| {
                let inside = rest.strip_prefix(open)?;
                let tex = &inside[..inside.find(close)?];
                let taken = tex.len() + 4;
                let tex = tex.trim();
                let is_formula = !tex.is_empty() && !tex.contains("\n\n") && !tex.contains('$');
                is_formula.then(|| (taken, format!("{mark}{tex}{mark}")))
            });
            let escaped = usize::from(rest.starts_with('\\'));
            let single = rest.chars().take(1 + escaped).map(char::len_utf8).sum();
            let (taken, made) = match (ticks, math) {
                (0, Some(math)) => math,
                (0, None) => (single, rest[..single].to_owned()),
                _ => {
                    let taken = code.unwrap_or(open);
                    (taken, rest[..taken].to_owned())
                }
            };
            written.push_str(&made);
            rest = &rest[taken..];
        }
        written + rest
    }

    #[test]
    fn what_is_remembered_of_a_text_changes_nothing() {
        const PARTS: [&str; 14] = [
            "\\(", "\\)", "\\[", "\\]", "$", "`", "``", "```", "\n", "\n\n", " ", "a", "\\", "é",
        ];
        let mut seed = 1_u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..seed % 24 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                text.push_str(PARTS[(seed >> 33) as usize % PARTS.len()]);
            }
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            assert_eq!(with_dollars(&text), searched_again(&text), "{text:?}");
        }
    }

    /// With a search from each mark to the end, each of these took minutes.
    #[test]
    fn a_text_full_of_marks_takes_time_in_proportion_to_its_length() {
        const LENGTH: usize = 1_000_000;
        let began = std::time::Instant::now();
        for (part, end) in [
            ("\\(", ""),
            ("\\[", ""),
            ("\\(", "$ \\)"),
            ("\\[", "a\n\nb \\]"),
            ("\\( ", "$\\)"),
            ("\\(", " $\n\n\\)"),
            ("\\`` \\( ", ""),
            ("\\``", "\\("),
            ("$", "\\("),
            ("` a\n\n", "\\("),
            ("$`", "\\("),
            ("[", "\\("),
            ("$$ ", "\\("),
        ] {
            let text = part.repeat(LENGTH / part.len()) + end;
            assert!(rendered(&text).len() >= text.len() / 4, "{part}");
        }
        let blanks = " ".repeat(LENGTH / 2);
        let text = format!("{}$a\n\nb{blanks}\\)", "\\(".repeat(LENGTH / 4));
        assert_eq!(with_dollars(&text), text);
        assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
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
