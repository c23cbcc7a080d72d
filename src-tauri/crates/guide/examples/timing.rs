//! Times the guide: building its index, and an answer. `cargo run --release -p guide --example timing`
#![expect(clippy::print_stdout, reason = "the figures are for a person")]

use std::time::Instant;

use guide::Guide;

const QUESTIONS: &str = include_str!("../tests/held_out.txt");
const REPEATS: u32 = 20;

fn main() {
    let start = Instant::now();
    let guide = Guide::shared();
    println!("{} topics: {:.2?}", guide.topics().len(), start.elapsed());
    let start = Instant::now();
    let _ = guide.answer("how do I stop an answer");
    println!("first answer, with the index: {:.2?}", start.elapsed());
    let questions: Vec<&str> = QUESTIONS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    let start = Instant::now();
    for _ in 0..REPEATS {
        for question in &questions {
            let _ = guide.answer(question);
        }
    }
    let each = start.elapsed() / (REPEATS * questions.len() as u32);
    println!("an answer: {each:.2?}");
}
