//! `goldcrest guide`: the topics of the guide.

use std::io::{self, Write};

use ::guide::{Guide, Topic, replace_links};

use super::args::GuideArgs;
use super::output::{self, CliError};
use crate::visible::on_one_line;

/// Maximum topics that are listed for words.
const FOUND: usize = 5;

pub fn run(args: &GuideArgs) -> Result<(), CliError> {
    let guide = Guide::shared();
    let typed = args.topic.join(" ");
    let mut out = output::stdout();
    if typed.is_empty() {
        write_list(&mut out, guide.topics())?;
        return Ok(out.flush()?);
    }
    let topic = guide.topic(&typed).or_else(|| guide.answer(&typed).sure());
    let found = guide.search(&typed);
    let others = found.into_iter().filter(|&found| Some(found) != topic);
    let others: Vec<&Topic> = others.take(FOUND).collect();
    match topic {
        Some(topic) => write_topic(&mut out, topic)?,
        None if others.is_empty() => {
            let typed = on_one_line(&typed);
            return Err(CliError::message(format!(
                "the guide has nothing about “{typed}”; `goldcrest guide` lists the topics"
            )));
        }
        None => {
            writeln!(
                out,
                "Topics that may help; `goldcrest guide ID` prints one:\n"
            )?;
            write_ids(&mut out, others)?;
        }
    }
    Ok(out.flush()?)
}

fn write_list(out: &mut impl Write, topics: &[Topic]) -> io::Result<()> {
    writeln!(out, "`goldcrest guide ID` prints a topic.")?;
    for page in topics.chunk_by(|one, other| one.page == other.page) {
        writeln!(out, "\n{}", page[0].page_title)?;
        write_ids(out, page)?;
    }
    Ok(())
}

fn write_ids<'t>(
    out: &mut impl Write,
    topics: impl IntoIterator<Item = &'t Topic>,
) -> io::Result<()> {
    for topic in topics {
        writeln!(out, "  {:<36}  {}", topic.id, topic.title)?;
    }
    Ok(())
}

fn write_topic(out: &mut impl Write, topic: &Topic) -> io::Result<()> {
    writeln!(out, "{}\n\n{}", topic.title, plain(topic.answer))?;
    if !topic.details.is_empty() {
        writeln!(out, "\n{}", plain(topic.details))?;
    }
    Ok(())
}

/// Returns Markdown as a terminal shows it best: without the marks of bold text, and links as the id of their topic.
pub fn plain(markdown: &str) -> String {
    let links = |words: &str, target: &str| {
        let target = target.split_once('#').map_or(target, |(_, id)| id);
        format!("{words} ({target})")
    };
    replace_links(markdown, links).replace("**", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_shows_no_marks_of_markdown() {
        assert_eq!(
            plain(
                "**Esc** stops; see [Answers](answers.md#stop-an-answer) and [candle](https://example.org)."
            ),
            "Esc stops; see Answers (stop-an-answer) and candle (https://example.org)."
        );
        assert_eq!(plain("a list[0] and f(x)"), "a list[0] and f(x)");
    }
}
