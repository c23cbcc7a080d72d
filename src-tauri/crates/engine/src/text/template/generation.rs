//! `{% generation %}` blocks mark the model's answer for training and print nothing.
//! Jinja2 has an extension for them; here each tag becomes an `if true` block, so that
//! the whitespace control of the tag and the line numbers stay as they are.

/// `source` with `generation` and `endgeneration` tags replaced by `if true` and `endif`.
pub(super) fn without_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start);
        let end = tag.find("%}").map_or(tag.len(), |end| end + 2);
        let (tag, after) = tag.split_at(end);
        out.push_str(before);
        match tag.trim_matches(['{', '%', '-', '+', '}']).trim() {
            "generation" => out.push_str(&tag.replacen("generation", "if true", 1)),
            "endgeneration" => out.push_str(&tag.replacen("endgeneration", "endif", 1)),
            _ => out.push_str(tag),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}
