//! The final check of an answer's HTML: it contains only the elements of answers. The script that makes it escapes all
//! text; this check guards against a fault of the script. It rejects, and repairs nothing.

/// Elements of answers, with their attributes.
const ELEMENTS: [(&str, &[&str]); 32] = [
    ("a", &["href"]),
    ("blockquote", &[]),
    ("br", &[]),
    ("code", &["class", "data-language"]),
    ("div", &["class", "tabindex"]),
    ("em", &[]),
    ("figcaption", &[]),
    ("figure", &["class"]),
    ("h3", &[]),
    ("h4", &[]),
    ("h5", &[]),
    ("h6", &[]),
    ("hr", &[]),
    ("kbd", &[]),
    ("li", &["class"]),
    ("mark", &[]),
    ("ol", &["start"]),
    ("p", &["class"]),
    ("pre", &["tabindex"]),
    ("s", &[]),
    ("span", &["class", "data-tex", "role", "aria-label"]),
    ("strong", &[]),
    ("sub", &[]),
    ("sup", &[]),
    ("table", &[]),
    ("tbody", &[]),
    ("td", &["align", "class"]),
    ("th", &["align", "class"]),
    ("thead", &[]),
    ("tr", &[]),
    ("u", &[]),
    ("ul", &[]),
];

/// Elements of MathML.
const FORMULA: [&str; 26] = [
    "math",
    "menclose",
    "mfrac",
    "mi",
    "mmultiscripts",
    "mn",
    "mo",
    "mover",
    "mpadded",
    "mphantom",
    "mprescripts",
    "mroot",
    "mrow",
    "ms",
    "mspace",
    "msqrt",
    "mstyle",
    "msub",
    "msubsup",
    "msup",
    "mtable",
    "mtd",
    "mtext",
    "mtr",
    "munder",
    "munderover",
];

/// Attributes of MathML: none refers to anything outside the formula.
const OF_FORMULAS: [&str; 32] = [
    "accent",
    "accentunder",
    "class",
    "columnalign",
    "columnspan",
    "depth",
    "display",
    "displaystyle",
    "fence",
    "form",
    "height",
    "largeop",
    "linethickness",
    "lspace",
    "mathbackground",
    "mathcolor",
    "mathsize",
    "mathvariant",
    "maxsize",
    "minsize",
    "movablelimits",
    "notation",
    "rowspacing",
    "rowspan",
    "rspace",
    "scriptlevel",
    "separator",
    "side",
    "stretchy",
    "symmetric",
    "voffset",
    "width",
];

/// Elements without content.
const EMPTY: [&str; 2] = ["br", "hr"];

/// True for HTML as the script writes it: known elements with known attributes in double quotes, each closed in order,
/// links to plain addresses, and text without other markup.
pub(super) fn is_harmless(html: &str) -> bool {
    let mut open = Vec::new();
    let mut parts = html.split('<');
    if parts.next().is_some_and(|text| text.contains('>')) {
        return false;
    }
    for part in parts {
        let Some((tag, text)) = part.split_once('>') else {
            return false;
        };
        if text.contains('>') {
            return false;
        }
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name) {
                return false;
            }
            continue;
        }
        let Some(name) = known(tag) else {
            return false;
        };
        if !EMPTY.contains(&name) {
            open.push(name);
        }
    }
    open.is_empty()
}

/// The name of an element whose tag has only known attributes.
fn known(tag: &str) -> Option<&str> {
    let (name, mut rest) = tag.split_at(tag.find(' ').unwrap_or(tag.len()));
    let element = ELEMENTS.iter().find(|(known, _)| *known == name);
    let attributes: &[&str] = match element {
        Some((_, attributes)) => attributes,
        None if FORMULA.contains(&name) => &OF_FORMULAS,
        None => return None,
    };
    while !rest.is_empty() {
        let (attribute, after) = rest.strip_prefix(' ')?.split_once("=\"")?;
        let (value, after) = after.split_once('"')?;
        let is_known = attributes.contains(&attribute);
        if !is_known || (attribute == "href" && !is_plain_address(value)) {
            return None;
        }
        rest = after;
    }
    Some(name)
}

/// True for the address of a page, or of a mail with no more than a subject and a body: other fields could attach a
/// file.
fn is_plain_address(escaped: &str) -> bool {
    let address = escaped.replace("&amp;", "&");
    let scheme = address.split(':').next().unwrap_or_default();
    match scheme.to_ascii_lowercase().as_str() {
        "http" | "https" => true,
        "mailto" => {
            let fields = address.split_once('?').map_or("", |(_, fields)| fields);
            let is_text = |field: &str| {
                let name = field.split('=').next().unwrap_or_default();
                let texts = ["", "subject", "body"];
                texts.iter().any(|text| name.eq_ignore_ascii_case(text))
            };
            fields.split('&').all(is_text)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_answers_hold_passes() {
        for html in [
            "",
            "a &lt; b",
            "<p>a<br>\nb</p>\n<hr>",
            "<ol start=\"3\"><li class=\"task\">a</li></ol>",
            "<a href=\"https://a.example/?b=1&amp;c=2\">a</a>",
            "<a href=\"mailto:a@b.example?subject=s&amp;body=b\">a</a>",
            "<span class=\"math\" data-tex=\"a &lt; b\"><math display=\"block\"><mi>a</mi></math></span>",
        ] {
            assert!(is_harmless(html), "{html}");
        }
    }

    #[test]
    fn all_else_is_refused() {
        for html in [
            "<script>x()</script>",
            "<p onclick=\"x()\">a</p>",
            "<p style=\"color: red\">a</p>",
            "<p class=x>a</p>",
            "<p class='x'>a</p>",
            "<p\nclass=\"x\">a</p>",
            "<P>a</P>",
            "<p>a",
            "a</p>",
            "</div></div>",
            "<p><em>a</p></em>",
            "<p>a > b</p>",
            "a > b",
            "<",
            "<p",
            "<!-- a -->",
            "<!doctype html>",
            "<img src=\"x\">",
            "<math><mi href=\"https://a.example\">x</mi></math>",
            "<math><annotation>x</annotation></math>",
            "<svg></svg>",
            "<a href=\"javascript:x\">a</a>",
            "<a href=\" javascript:x\">a</a>",
            "<a href=\"&#106;avascript:x\">a</a>",
            "<a href=\"data:text/html,x\">a</a>",
            "<a href=\"//a.example\">a</a>",
            "<a href=\"mailto:a@b?attach=/etc/passwd\">a</a>",
            "<a href=\"mailto:a@b?%61ttach=x\">a</a>",
        ] {
            assert!(!is_harmless(html), "{html}");
        }
    }
}
