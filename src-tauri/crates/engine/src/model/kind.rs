//! Names of architectures, as people know them.

use super::architecture::ARCHITECTURES;

/// Names in which capital letters and spaces cannot be derived.
const NAMES: [(&str, &str); 10] = [
    ("deepseek2", "DeepSeek 2"),
    ("gemma3n", "Gemma 3n"),
    ("gpt-oss", "GPT-OSS"),
    ("gptneox", "GPT-NeoX"),
    ("lfm2", "LFM 2"),
    ("olmo2", "OLMo 2"),
    ("qwen2moe", "Qwen 2 MoE"),
    ("qwen2vl", "Qwen 2.5 VL"),
    ("qwen3moe", "Qwen 3 MoE"),
    ("qwen3vl", "Qwen 3 VL"),
];

/// Returns a model of an architecture, with its article: `a Gemma 3 model` of `gemma3`.
pub fn model_kind(architecture: &str) -> String {
    let name = name_of(architecture);
    let vowel = name.starts_with(['A', 'E', 'I', 'O', 'U']);
    format!("{} {name} model", if vowel { "an" } else { "a" })
}

fn name_of(architecture: &str) -> String {
    if let Some((_, name)) = NAMES.iter().find(|(key, _)| *key == architecture) {
        return (*name).to_owned();
    }
    let is_key = |it: char| it.is_alphanumeric() || matches!(it, '-' | '_' | '.');
    if !architecture.chars().all(is_key) {
        return architecture.to_owned();
    }
    let digit = architecture.find(|it: char| it.is_ascii_digit());
    let (word, version) = architecture.split_at(digit.unwrap_or(architecture.len()));
    let mut letters = word.trim_end_matches(['-', '_']).chars();
    let first = letters.next().map(char::to_uppercase);
    let space = if word.is_empty() || version.is_empty() {
        ""
    } else {
        " "
    };
    let capitalised: String = first.into_iter().flatten().chain(letters).collect();
    format!("{capitalised}{space}{version}")
}

/// Returns the names of the models that run: `SmolLM3, SmolLM2, Llama 3, Qwen 2.5 and Qwen 3`.
pub fn runnable() -> String {
    let names: Vec<_> = ARCHITECTURES.iter().flat_map(|it| it.models).collect();
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => {
            let rest: Vec<_> = rest.iter().map(|name| **name).collect();
            format!("{} and {last}", rest.join(", "))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_go_by_the_names_that_people_know() {
        for (architecture, kind) in [
            ("gemma3", "a Gemma 3 model"),
            ("gemma-3", "a Gemma 3 model"),
            ("phi3", "a Phi 3 model"),
            ("qwen3moe", "a Qwen 3 MoE model"),
            ("olmo2", "an OLMo 2 model"),
            ("falcon", "a Falcon model"),
            ("3d", "a 3d model"),
            ("ünï2", "a Ünï 2 model"),
            ("\u{1b}[31mhm", "a \u{1b}[31mhm model"),
        ] {
            assert_eq!(model_kind(architecture), kind);
        }
        assert_eq!(runnable(), "SmolLM3, SmolLM2, Llama 3, Qwen 2.5 and Qwen 3");
    }
}
