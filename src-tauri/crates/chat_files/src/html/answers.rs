//! Answers as HTML, by the page's own code: `ui/src/export.ts` in QuickJS. It gets a text and returns one, has no
//! access to anything else, and its result is checked ([`guard`](super::guard)).

use rquickjs::{Context, Function, Runtime};
use url::Url;

use super::escaped::escaped;
use super::guard::is_harmless;

/// `npm run build:ui` makes it.
const SCRIPT: &str = include_str!("../../../../../ui/dist-export/answers.js");

/// Bytes of the stack that the script may take: half of what a thread of the standard library has.
const STACK: usize = 1 << 20;
/// Bytes that it may allocate.
const MEMORY: usize = 512 << 20;

/// Renders answers. The script is started with the first one.
#[derive(Default)]
pub(crate) struct Answers(Option<Context>);

impl Answers {
    /// Renders an answer as HTML; as plain text if the script fails, or returns HTML that an answer cannot contain.
    pub fn html(&mut self, markdown: &str) -> String {
        let html = self.rendered(markdown).ok();
        html.filter(|html| is_harmless(html)).unwrap_or_else(|| {
            format!(
                "<p class=\"formula-open\">{}</p>\n",
                escaped(markdown.trim())
            )
        })
    }

    fn rendered(&mut self, markdown: &str) -> rquickjs::Result<String> {
        let context = match &mut self.0 {
            Some(context) => context,
            none => none.insert(started()?),
        };
        context.with(|js| {
            let render: Function<'_> = js.globals().get("answerHtml")?;
            render.call((markdown,))
        })
    }
}

fn started() -> rquickjs::Result<Context> {
    let runtime = Runtime::new()?;
    runtime.set_max_stack_size(STACK);
    runtime.set_memory_limit(MEMORY);
    let context = Context::full(&runtime)?;
    context.with(|js| {
        js.globals()
            .set("schemeOf", Function::new(js.clone(), scheme_of)?)?;
        js.eval::<(), _>(SCRIPT)
    })?;
    Ok(context)
}

/// The scheme of an address as a browser parses it; `None` if it has a user name, which can look like the host.
#[expect(clippy::needless_pass_by_value, reason = "the script hands it over")]
fn scheme_of(address: String) -> Option<String> {
    let url = Url::parse(&address).ok()?;
    let is_plain = url.username().is_empty() && url.password().is_none();
    is_plain.then(|| url.scheme().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Instant;

    use super::*;

    fn html(markdown: &str) -> String {
        Answers::default().html(markdown)
    }

    /// Shortens formulas, as in the snippets.
    fn without_formulas(html: &str) -> String {
        let mut parts = html.split("<span class=\"math");
        let mut short = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (kind, rest) = part.split_once("\" data-tex=\"").expect("its TeX");
            let (tex, rest) = rest.split_once("\">").expect("the end of the tag");
            let (_, rest) = rest.split_once("</span>").expect("the end of the formula");
            let name = if kind.is_empty() { "math" } else { kind.trim() };
            short.push_str(&format!("[{name} {tex}]{rest}"));
        }
        short
    }

    #[test]
    fn an_export_has_the_html_of_the_page() {
        const BUTTON: &str = "<button type=\"button\" class=\"copy\" data-made aria-label=\"Copy code\">Copy</button>";
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../ui/src/text/snippets");
        let mut answers = Answers::default();
        let mut count = 0;
        for file in fs::read_dir(folder).expect("snippets") {
            let text = fs::read_to_string(file.expect("a file").path()).expect("text");
            let snippets: Vec<(String, String)> = serde_json::from_str(&text).expect("snippets");
            for (markdown, html) in snippets {
                let rendered = without_formulas(&answers.html(&markdown));
                assert_eq!(rendered, html.replace(BUTTON, ""), "{markdown}");
                count += 1;
            }
        }
        assert!(count >= 150, "{count}");
    }

    #[test]
    fn an_answer_has_no_markup_of_its_own() {
        for (markdown, rendered) in [
            ("a <b>c</b>", "<p>a &lt;b&gt;c&lt;/b&gt;</p>\n"),
            (
                "<script>x()</script>",
                "<p>&lt;script&gt;x()&lt;/script&gt;</p>\n",
            ),
            (
                "[a\u{202e}b](https://x.org/?a=1&b=\"2)",
                "<p><a href=\"https://x.org/?a=1&amp;b=%222\">ab</a></p>\n",
            ),
            (
                "[a](mailto:a@b?attach=/etc/passwd&subject=s)",
                "<p><a href=\"mailto:a@b?subject=s\">a</a></p>\n",
            ),
        ] {
            assert_eq!(html(markdown), rendered, "{markdown}");
        }
        for markdown in [
            "[a](javascript:x)",
            "[a](JAVASCRIPT:x)",
            "[a](data:text/html,x)",
        ] {
            assert!(!html(markdown).contains("href"), "{markdown}");
        }
        for tex in [
            "\\text{<script>x</script>}",
            "\\href{javascript:x}{<b>}",
            "<img src=x>",
        ] {
            let html = html(&format!("${tex}$"));
            assert!(
                !html.contains("<script") && !html.contains("<img"),
                "{html}"
            );
            assert!(!html.contains("<b>") && !html.contains("href="), "{html}");
        }
    }

    #[test]
    fn every_known_formula_passes_the_guard() {
        let text = include_str!("../../../../../ui/src/text/formulas.json");
        let formulas: Vec<String> = serde_json::from_str(text).expect("formulas");
        let mut answers = Answers::default();
        for tex in formulas {
            let html = answers.html(&format!("$$\n{tex}\n$$"));
            assert!(html.contains("<math"), "{tex}: {html}");
        }
    }

    /// A text full of one mark takes linear time, and no stack.
    #[test]
    fn a_text_full_of_marks_is_rendered() {
        let began = Instant::now();
        let mut answers = Answers::default();
        for part in [
            "\\(",
            "\\[",
            "$$ ",
            "$x$ ",
            "[",
            "[a](",
            "**a",
            "`",
            "> ",
            "- ",
            "* a\n  ",
            "<sub>",
            "<!--",
            "| a |\n|--|\n",
            "{",
            "a\n\n",
            "\\begin{align}",
        ] {
            let text = part.repeat(50_000 / part.len());
            assert!(!answers.html(&text).is_empty(), "{part}");
        }
        for tex in [
            "\\hat",
            "\\frac",
            "\\sqrt{",
            "x^{",
            "\\left(",
            "\\begin{matrix}",
        ] {
            let html = answers.html(&format!("${}$", tex.repeat(1900 / tex.len())));
            assert!(html.len() < 200_000, "{tex}");
        }
        assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
    }

    /// Cost of an export: `cargo test -p chat_files --release -- --ignored --nocapture`.
    #[test]
    #[ignore = "a measurement"]
    #[expect(clippy::print_stdout, reason = "it is what is measured")]
    fn a_thousand_answers_take_seconds() {
        let text = include_str!("typical.md");
        let began = Instant::now();
        let mut answers = Answers::default();
        for number in 0..1000 {
            answers.html(&text.replace("NUMBER", &number.to_string()));
        }
        let thousand = began.elapsed();
        let long = text.repeat((1 << 20) / text.len());
        let began = Instant::now();
        let html = answers.html(&long);
        let one = began.elapsed();
        println!(
            "1,000 answers {thousand:?}, 1 MiB {one:?}, of {} bytes",
            html.len()
        );
    }
}
