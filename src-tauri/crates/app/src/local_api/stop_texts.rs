//! Texts before which an answer ends.

/// Finds the texts in an answer that comes in pieces.
pub struct StopTexts {
    texts: Vec<String>,
    /// End of the answer that may be the beginning of a text.
    held: String,
}

impl StopTexts {
    pub fn new(texts: Vec<String>) -> StopTexts {
        StopTexts {
            texts,
            held: String::new(),
        }
    }

    /// Takes a piece. Returns what is certainly of the answer, and true if a text came behind it.
    pub fn push(&mut self, piece: &str) -> (String, bool) {
        if self.texts.is_empty() {
            return (piece.to_owned(), false);
        }
        self.held.push_str(piece);
        let first = self.texts.iter().filter_map(|text| self.held.find(text));
        if let Some(at) = first.min() {
            self.held.truncate(at);
            return (std::mem::take(&mut self.held), true);
        }
        let longest = self
            .texts
            .iter()
            .map(|text| beginning_at_end(&self.held, text));
        let held = longest.max().unwrap_or(0);
        let rest = self.held.split_off(self.held.len() - held);
        (std::mem::replace(&mut self.held, rest), false)
    }

    /// Returns what is held at the end of the answer.
    pub fn end(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

/// Returns the bytes of the longest beginning of `text` with which `answer` ends.
fn beginning_at_end(answer: &str, text: &str) -> usize {
    let most = text.len().min(answer.len());
    let lengths = (1..=most).rev();
    let found = lengths
        .filter(|length| text.is_char_boundary(*length))
        .find(|length| answer.ends_with(&text[..*length]));
    found.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emitted(texts: &[&str], pieces: &[&str]) -> (String, bool) {
        let mut stop = StopTexts::new(texts.iter().map(|it| (*it).to_owned()).collect());
        let mut emitted = String::new();
        for piece in pieces {
            let (text, ends) = stop.push(piece);
            emitted.push_str(&text);
            if ends {
                return (emitted, true);
            }
        }
        emitted.push_str(&stop.end());
        (emitted, false)
    }

    #[test]
    fn an_answer_ends_before_the_first_text_however_it_is_cut() {
        let answer = "Grüße: one\n\nUser: two";
        for texts in [&["\n\nUser:", "never"][..], &["User", "\n\nU"]] {
            for size in 1..6 {
                let chars: Vec<char> = answer.chars().collect();
                let pieces: Vec<String> =
                    chars.chunks(size).map(|it| it.iter().collect()).collect();
                let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
                assert_eq!(emitted(texts, &pieces), ("Grüße: one".to_owned(), true));
            }
        }
    }

    #[test]
    fn what_only_begins_like_a_text_is_emitted() {
        assert_eq!(
            emitted(&["stop!"], &["don't sto", "p it, sto"]),
            ("don't stop it, sto".to_owned(), false)
        );
        assert_eq!(
            emitted(&["éa"], &["é", "é", "b"]),
            ("ééb".to_owned(), false)
        );
        assert_eq!(emitted(&[], &["a", "b"]), ("ab".to_owned(), false));
    }
}
