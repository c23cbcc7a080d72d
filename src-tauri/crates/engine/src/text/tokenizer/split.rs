//! Pre-tokenisers, which split text into words before BPE: one table of those that files name.

/// A pre-tokeniser.
#[derive(Debug, PartialEq)]
pub(super) struct WordSplit {
    /// Values of `tokenizer.ggml.pre`.
    pub(super) names: &'static [&'static str],
    /// Regular expressions, each applied to the words that the one before made. Sources: the published `tokenizer.json`
    /// files, llama.cpp's `llm_tokenizer_bpe`.
    pub(super) patterns: &'static [&'static str],
    /// True if a word that is a token becomes that token, without merges.
    pub(super) ignore_merges: bool,
    /// True if a run of white space ends with its last line break. Otherwise all of it but the last character is a
    /// word, and the text that follows decides if the last one belongs to that word.
    pub(super) line_break_ends_word: bool,
}

/// Llama 3's. `smaug-bpe` and `llama-bpe` are two names for it.
static LLAMA3: WordSplit = WordSplit {
    names: &["smaug-bpe", "llama-bpe", "llama3", "llama-v3"],
    patterns: &[
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ],
    ignore_merges: true,
    line_break_ends_word: true,
};

/// Llama 3's split with each digit alone.
static QWEN2: WordSplit = WordSplit {
    names: &["qwen2"],
    patterns: &[
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    ],
    ignore_merges: false,
    line_break_ends_word: true,
};

const GPT2_PATTERN: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// SmolLM2's: each digit alone, then as GPT-2.
static SMOLLM: WordSplit = WordSplit {
    names: &["smollm"],
    patterns: &[r"\p{N}", GPT2_PATTERN],
    ignore_merges: false,
    line_break_ends_word: false,
};

static GPT2: WordSplit = WordSplit {
    names: &["gpt-2"],
    patterns: &[GPT2_PATTERN],
    ignore_merges: false,
    line_break_ends_word: false,
};

static SPLITS: [&WordSplit; 4] = [&LLAMA3, &QWEN2, &SMOLLM, &GPT2];

impl WordSplit {
    /// The pre-tokeniser of this name.
    pub(super) fn named(name: &str) -> Option<&'static WordSplit> {
        SPLITS.into_iter().find(|split| split.names.contains(&name))
    }

    /// The pre-tokeniser of a `tokenizer.json`, whose texts `mentions` searches; `splits_digits` is set if each digit
    /// is a word. A `Split` replaces GPT-2's split of the `ByteLevel`.
    pub(super) fn mentioned(
        mentions: impl Fn(&str) -> bool,
        splits_digits: bool,
    ) -> Option<&'static WordSplit> {
        if !mentions("ByteLevel") {
            return None;
        }
        if mentions("Split") {
            return [&LLAMA3, &QWEN2]
                .into_iter()
                .find(|split| split.patterns.iter().all(|pattern| mentions(pattern)));
        }
        match mentions("Digits") {
            true => splits_digits.then_some(&SMOLLM),
            false => Some(&GPT2),
        }
    }

    /// The first name of each, for messages.
    pub(super) fn known() -> String {
        let names: Vec<_> = SPLITS
            .iter()
            .flat_map(|split| split.names)
            .map(|name| format!("`{name}`"))
            .collect();
        names.join(", ")
    }
}
