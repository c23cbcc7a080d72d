//! Detection of answers that repeat themselves without end.

use std::ops::RangeInclusive;

/// Lengths of a repeated run, in tokens. A shorter period repeats within a run of its multiple.
const RUN: RangeInclusive<usize> = 20..=400;
/// Occurrences of a run in a row at which an answer is stopped.
const RUNS: usize = 3;
/// Occurrences of a line in a row at which an answer is stopped.
const LINES: usize = 5;
/// Length in characters below which a line may repeat: `---`, `}`.
const SHORT_LINE: usize = 12;
/// Occurrences of a run or line in code and tables, where equal rows are common.
const ROWS: usize = 16;

/// The tokens of an answer, and the runs and lines at its end that repeat.
pub(crate) struct Repetition {
    ids: Vec<u32>,
    /// By length of a run: tokens at the end that equal those one run earlier.
    equal: Vec<usize>,
    line: String,
    last_line: String,
    /// Times in a row that `last_line` occurred.
    same_lines: usize,
    /// The mark of the open code block.
    fence: Option<&'static str>,
}

impl Repetition {
    pub(crate) fn new() -> Repetition {
        Repetition {
            ids: Vec::new(),
            equal: vec![0; RUN.end() + 1],
            line: String::new(),
            last_line: String::new(),
            same_lines: 0,
            fence: None,
        }
    }

    /// Adds a token and its text; returns true if the answer repeats itself.
    pub(crate) fn push(&mut self, id: u32, piece: &str) -> bool {
        self.repeats_lines(piece) | self.repeats_run(id)
    }

    fn repeats_run(&mut self, id: u32) -> bool {
        let runs = self.limit(RUNS);
        let at = self.ids.len();
        self.ids.push(id);
        let mut repeats = false;
        for run in RUN.take_while(|run| *run <= at) {
            let equal = &mut self.equal[run];
            *equal = if self.ids[at - run] == id {
                *equal + 1
            } else {
                0
            };
            repeats |= *equal >= (runs - 1) * run;
        }
        repeats
    }

    fn repeats_lines(&mut self, piece: &str) -> bool {
        let mut repeats = false;
        for part in piece.split_inclusive('\n') {
            self.line.push_str(part);
            if part.ends_with('\n') {
                repeats |= self.end_line();
            }
        }
        repeats
    }

    fn end_line(&mut self) -> bool {
        let line = std::mem::take(&mut self.line);
        let line = line.trim();
        match self.fence {
            Some(mark) if line.starts_with(mark) => self.fence = None,
            Some(_) => {}
            None => {
                self.fence = ["```", "~~~"]
                    .into_iter()
                    .find(|mark| line.starts_with(mark));
            }
        }
        if line.is_empty() {
            return false;
        }
        if line == self.last_line {
            self.same_lines += 1;
        } else {
            line.clone_into(&mut self.last_line);
            self.same_lines = 1;
        }
        line.chars().count() >= SHORT_LINE && self.same_lines >= self.limit(LINES)
    }

    /// Limit of a count at the current position: `text`, or that of code and tables.
    fn limit(&self, text: usize) -> usize {
        let is_row = |line: &str| line.trim_start().starts_with('|');
        let in_table = is_row(&self.line) || is_row(&self.last_line);
        if self.fence.is_some() || in_table {
            ROWS
        } else {
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Words and signs of a text, as tokens.
    fn pieces(text: &str) -> impl Iterator<Item = &str> {
        text.split_inclusive([' ', '\n'])
    }

    /// Number of tokens after which the text is stopped.
    fn stopped_after(text: &str) -> Option<usize> {
        let mut ids = HashMap::new();
        let mut repetition = Repetition::new();
        pieces(text)
            .map(|piece| {
                let next = u32::try_from(ids.len()).expect("few");
                (*ids.entry(piece).or_insert(next), piece)
            })
            .position(|(id, piece)| repetition.push(id, piece))
            .map(|at| at + 1)
    }

    #[test]
    fn a_run_of_twenty_tokens_three_times_is_stopped() {
        let run: String = (0..20).map(|word| format!("word{word} ")).collect();
        assert_eq!(stopped_after(&run.repeat(2)), None);
        assert_eq!(stopped_after(&run.repeat(9)), Some(60));
        assert_eq!(stopped_after(&"again ".repeat(100)), Some(60));
        let before = "An answer begins like this: ";
        assert_eq!(
            stopped_after(&format!("{before}{}", "and so on, ".repeat(90))),
            Some(5 + 63),
            "21 tokens are the least multiple of 3"
        );
    }

    #[test]
    fn a_line_five_times_in_a_row_is_stopped_also_with_empty_lines_between() {
        let line = "The sun is high in the sky,\n";
        assert_eq!(stopped_after(&line.repeat(4)), None);
        assert_eq!(stopped_after(&line.repeat(9)), Some(35));
        let apart = "The sun is high in the sky,\n\n";
        assert!(stopped_after(&apart.repeat(9)).is_some());
        assert_eq!(stopped_after(&"---\n".repeat(12)), None);
    }

    #[test]
    fn code_and_tables_may_repeat_more_and_not_without_end() {
        let row = "    [0, 0, 0, 0, 0, 0, 0, 0],\n";
        let matrix = format!("```python\nm = [\n{}]\n```\n", row.repeat(9));
        assert_eq!(stopped_after(&matrix), None);
        assert!(stopped_after(&format!("```\n{}", row.repeat(200))).is_some());
        let table = format!("| a | b |\n|---|---|\n{}", "| 0 | 0 |\n".repeat(15));
        assert_eq!(stopped_after(&table), None);
        assert!(stopped_after(&"| 0 | 0 | 0 | 0 |\n".repeat(200)).is_some());
    }

    #[test]
    fn a_chorus_and_a_list_are_no_repetition() {
        let verse =
            |n: usize| format!("{n} green bottles hanging on the wall,\nAnd if one falls,\n");
        let song: String = (1..40).rev().map(verse).collect();
        assert_eq!(stopped_after(&song), None);
        let list: String = (1..60)
            .map(|n| format!("{n}. Write one line a day about this.\n"))
            .collect();
        assert_eq!(stopped_after(&list), None);
    }

    #[test]
    fn no_text_of_this_project_is_stopped() {
        for text in [
            include_str!("../../../../../README.md"),
            include_str!("../../../../ARCHITECTURE.md"),
            include_str!("../../../../benches/record/README.md"),
            include_str!("repetition.rs"),
        ] {
            assert_eq!(stopped_after(text), None, "{}", &text[..40]);
        }
    }
}
