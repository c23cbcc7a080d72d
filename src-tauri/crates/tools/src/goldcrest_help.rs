//! Help for the app: topics of the guide.

use std::sync::Arc;

use guide::{Guide, Match, Topic, replace_links};
use serde_json::{Map, Value, json};

use crate::tool::{Effects, Tool, ToolError, ToolInfo, ToolOutput, ToolRun, text_of};

/// Topics that are returned if none is sure.
const TOPICS: usize = 3;

/// The tool that explains the app.
pub struct GoldcrestHelp {
    info: Arc<ToolInfo>,
}

impl GoldcrestHelp {
    /// Makes the tool.
    pub fn new() -> GoldcrestHelp {
        let description = "Explains how to use Goldcrest, the app of this chat: its settings, models, shortcuts and \
            files. Example: How do I export a chat?";
        let parameters = json!({
            "type": "object",
            "properties": { "question": { "type": "string", "maxLength": 200 } },
            "required": ["question"],
            "additionalProperties": false,
        });
        let effects = Effects::default();
        let info = ToolInfo::built_in(
            "goldcrest_help",
            "Help for Goldcrest",
            description,
            parameters,
            effects,
        );
        GoldcrestHelp {
            info: Arc::new(info),
        }
    }
}

impl Tool for GoldcrestHelp {
    fn info(&self) -> Arc<ToolInfo> {
        Arc::clone(&self.info)
    }

    fn run(
        &self,
        arguments: &Map<String, Value>,
        _: &ToolRun<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let question = text_of(arguments, "question");
        let guide = Guide::shared();
        let topics = match guide.answer(question) {
            Match::Sure(topic) => vec![topic],
            Match::Unsure(_) | Match::None => {
                guide.search(question).into_iter().take(TOPICS).collect()
            }
        };
        if topics.is_empty() {
            return Ok(ToolOutput::new("The guide has nothing about this."));
        }
        let texts: Vec<String> = topics.into_iter().map(text).collect();
        Ok(ToolOutput::new(texts.join("\n\n")))
    }
}

/// Returns a topic as Markdown, in which links are only their words.
fn text(topic: &Topic) -> String {
    let Topic {
        title,
        answer,
        details,
        ..
    } = topic;
    let text = format!("## {title}\n{answer}\n\n{details}");
    replace_links(text.trim_end(), |words, _| words.to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::process::tests::within;

    fn help(question: &str) -> String {
        let arguments = Map::from_iter([("question".to_owned(), question.into())]);
        let output = within(Duration::from_secs(10), |run| {
            GoldcrestHelp::new().run(&arguments, run)
        });
        output.expect("a text").text
    }

    #[test]
    fn a_clear_question_gets_its_topic_and_others_get_the_best_ones() {
        let sure = help("How do I stop an answer?");
        assert_eq!(sure.matches("## ").count(), 1, "{sure}");
        assert!(!sure.contains("](") && sure.contains("Esc"), "{sure}");
        let unsure = help("backup");
        assert!(unsure.matches("## ").count() > 1, "{unsure}");
        assert_eq!(
            help(&"long ".repeat(200)),
            "The guide has nothing about this."
        );
    }
}
