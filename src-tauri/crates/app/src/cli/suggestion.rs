//! Suggestion for a mistyped command.

/// Returns the name that differs least from the typed one, by at most one edit per three letters, or begins with it.
pub fn likely<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let letters = typed.chars().count();
    let slips = |name: &str| strsim::damerau_levenshtein(&typed, name);
    let is_like =
        |name: &&str| 3 * slips(name) <= letters || letters > 1 && name.starts_with(&typed);
    names.filter(is_like).min_by_key(|name| slips(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_fingers_is_understood_and_another_word_is_not() {
        let names = ["ask", "models", "model", "regenerate", "no_think"];
        let likely = |typed: &str| likely(typed, names.into_iter());
        for (typed, meant) in [
            ("modles", "models"),
            ("Aks", "ask"),
            ("regen", "regenerate"),
            ("nothink", "no_think"),
        ] {
            assert_eq!(likely(typed), Some(meant), "{typed}");
        }
        for other in ["", "a", "/etc/hosts", "zzz", "书", "nonsense"] {
            assert_eq!(likely(other), None, "{other}");
        }
    }
}
