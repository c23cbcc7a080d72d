use crate::{File, Finding, Tree, code_only};

/// Private words, and the field's word in place of each. A phrase stands for itself in any spelling: `put off` is also
/// `put_off` and `putOff`.
const PRIVATE_WORDS: [(&str, &str); 34] = [
    ("anew", "again"),
    ("bunch", "block of rows"),
    ("bunches", "blocks of rows"),
    ("catch up", "replay"),
    ("complaint", "stderr"),
    ("complaints", "stderr"),
    ("demo model", "bundled model"),
    ("desk", "actor"),
    ("desks", "actors"),
    ("distrust", "mark as crashed last run"),
    ("distrusted", "crashed last run"),
    ("distrusting", "crashed last run"),
    ("guess", "draft"),
    ("guessed", "drafted"),
    ("guesses", "drafted tokens"),
    ("guessing", "speculative decoding"),
    ("is no number", "is NaN"),
    ("not heard of", "timed out"),
    ("page's letters", "commands"),
    ("patience", "timeout"),
    ("play a gpu", "software Vulkan"),
    ("playing a gpu", "software Vulkan"),
    ("plays a gpu", "software Vulkan"),
    ("plays the gpu", "software Vulkan"),
    ("put off", "disable"),
    ("slab", "block"),
    ("slabs", "blocks"),
    ("so many", "this number of"),
    ("stranger", "untrusted file"),
    ("strangers", "untrusted files"),
    ("stranger's", "untrusted"),
    ("told", "emitted"),
    ("untold", "not emitted"),
    ("wear", "set"),
];

/// Names of types that were renamed.
const PRIVATE_TYPES: [(&str, &str); 11] = [
    ("Bunch", "RowBlock"),
    ("Filling", "Uploader"),
    ("Fitted", "Truncation"),
    ("Flight", "InFlight"),
    ("Gone", "NoModel"),
    ("Growth", "Delta"),
    ("Letter", "Request"),
    ("Live", "AnswerBuffer"),
    ("Pace", "SubmitBudget"),
    ("Surviving", "Failover"),
    ("Unfitted", "TurnRequest"),
];

/// This list.
const EXEMPT: &str = "src-tauri/crates/tidy/src/rules/vocabulary.rs";

/// Checks that things have the names of the field.
pub fn vocabulary(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| is_ours(file)) {
        let words = words(&file.text);
        for (private, standard) in PRIVATE_WORDS {
            let lines = occurrences(&words, private);
            findings.extend(lines.map(|line| finding(file, line, private, standard)));
        }
        if file.has_extension(&["rs"]) {
            findings.extend(private_types(file));
        }
    }
    findings
}

fn finding(file: &File, line: usize, private: &str, standard: &str) -> Finding {
    let what = format!("{private:?} is a private word: the field says {standard:?}");
    Finding::at(&file.path, line, what)
}

fn is_ours(file: &File) -> bool {
    const EXTENSIONS: [&str; 12] = [
        "rs", "ts", "js", "mjs", "svelte", "css", "html", "wgsl", "toml", "md", "py", "cjs",
    ];
    file.has_extension(&EXTENSIONS) && file.path != EXEMPT
}

fn private_types(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in code_only(&file.text).lines().enumerate() {
        let names = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        for name in names {
            let banned = PRIVATE_TYPES.iter().find(|(private, _)| *private == name);
            findings
                .extend(banned.map(|(private, standard)| finding(file, index, private, standard)));
        }
    }
    findings
}

/// Returns the words of a text in lower case with their lines, as indices; names are split.
fn words(text: &str) -> Vec<(String, usize)> {
    let mut words = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mut word = String::new();
        let mut was_lower = false;
        for c in line.chars() {
            let is_part = c.is_alphanumeric() || (c == '\'' && !word.is_empty());
            if (!is_part || (c.is_uppercase() && was_lower)) && !word.is_empty() {
                words.push((std::mem::take(&mut word), index));
            }
            if is_part {
                word.extend(c.to_lowercase());
            }
            was_lower = c.is_lowercase();
        }
        if !word.is_empty() {
            words.push((word, index));
        }
    }
    words
}

/// Returns the lines on which a phrase begins; it may continue in the next line.
fn occurrences<'w>(
    words: &'w [(String, usize)],
    phrase: &str,
) -> impl Iterator<Item = usize> + use<'w> {
    let phrase: Vec<String> = phrase.split(' ').map(str::to_owned).collect();
    words.windows(phrase.len()).filter_map(move |found| {
        let is_phrase = found.iter().zip(&phrase).all(|((word, _), p)| word == p);
        is_phrase.then(|| found[0].1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let found = vocabulary(&Tree::sample(&[(path, text)]));
        found.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_private_word_is_found_in_each_spelling_and_names_the_standard_one() {
        let text = "put_off();\n// it is Put\n// off\nlet putOff = isSlab;\nlet input_offset = 1;";
        let mut found = lines("a.ts", text);
        found.sort_unstable();
        assert_eq!(found, [1, 2, 4, 4]);
        assert_eq!(
            vocabulary(&Tree::sample(&[("a.wgsl", "// not heard of")])),
            [Finding::at(
                "a.wgsl",
                0,
                "\"not heard of\" is a private word: the field says \"timed out\""
            )]
        );
    }

    #[test]
    fn a_private_type_is_found_in_code_and_its_word_is_free_in_prose() {
        let text = "// Gone. Live. A Letter.\nlet a: Letter = \"Letter\";\nstruct LetterCount;";
        assert_eq!(lines("a.rs", text), [2]);
    }

    #[test]
    fn every_private_word_is_found() {
        for (private, standard) in PRIVATE_WORDS {
            let text = format!("// This is {private}.");
            assert_eq!(lines("a.rs", &text), [1], "{private}");
            assert_ne!(private, standard);
        }
        for allowed in ["otherwise", "so much", "bunched", "outguess", "no number"] {
            assert_eq!(lines("a.rs", allowed), [0; 0], "{allowed}");
        }
    }

    #[test]
    fn the_list_and_texts_of_others_are_not_looked_at() {
        assert_eq!(lines(EXEMPT, "a slab"), [0; 0]);
        assert_eq!(lines("a.json", "a slab"), [0; 0]);
    }
}
