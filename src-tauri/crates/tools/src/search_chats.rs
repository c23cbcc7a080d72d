//! The search in earlier chats.

use std::sync::Arc;

use inference::Role;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::tool::{Effects, Tool, ToolError, ToolInfo, ToolOutput, ToolRun, text_of};

/// Maximum characters of a query, beyond which a model has lost itself.
const LONGEST_QUERY: usize = 120;
/// Maximum hits of a search.
const HITS: usize = 8;
/// Maximum characters of a hit.
const EXCERPT: usize = 400;

/// The chats that are stored. Temporary chats must never be found: nothing of them may reach another chat, which is
/// stored. Deleted ones must not be found either.
pub trait ChatSearch: Send + Sync {
    /// Finds at most `limit` messages and titles with all words of `query`, the best first. `except`: id of a chat that is
    /// left out.
    ///
    /// # Errors
    /// Fails with a sentence if the chats cannot be read.
    fn search(
        &self,
        query: &str,
        limit: usize,
        except: Option<i64>,
    ) -> Result<Vec<ChatHit>, String>;
}

/// A hit of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChatHit {
    /// Title of the chat.
    #[serde(rename = "chat")]
    pub title: String,
    /// Day of the message, such as 2026-11-28.
    pub date: String,
    /// Author of the message; `None` if only the title was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who: Option<Role>,
    /// Text around the hit; empty if only the title was found.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub excerpt: String,
}

/// The tool that searches chats.
pub struct SearchChats {
    info: Arc<ToolInfo>,
    chats: Arc<dyn ChatSearch>,
}

impl SearchChats {
    /// Makes the tool.
    pub fn new(chats: Arc<dyn ChatSearch>) -> SearchChats {
        let description = "Searches the user's earlier chats for words, and returns excerpts with their dates. Use few \
            words that must all occur. Example: sourdough recipe";
        let parameters = json!({
            "type": "object",
            "properties": { "query": { "type": "string", "maxLength": LONGEST_QUERY } },
            "required": ["query"],
            "additionalProperties": false,
        });
        let effects = Effects {
            reads_chats: true,
            ..Effects::default()
        };
        let info = ToolInfo::built_in(
            "search_chats",
            "Search in chats",
            description,
            parameters,
            effects,
        );
        SearchChats {
            info: Arc::new(info),
            chats,
        }
    }
}

impl Tool for SearchChats {
    fn info(&self) -> Arc<ToolInfo> {
        Arc::clone(&self.info)
    }

    fn run(
        &self,
        arguments: &Map<String, Value>,
        run: &ToolRun<'_>,
    ) -> Result<ToolOutput, ToolError> {
        let query = text_of(arguments, "query");
        if query.is_empty() {
            return Err(ToolError::Failed(
                "search_chats: `query` is empty.".to_owned(),
            ));
        }
        let hits = self
            .chats
            .search(query, HITS, run.chat)
            .map_err(ToolError::Failed)?;
        if hits.is_empty() {
            let none = "No chat has all of these words. Try fewer or other words.";
            return Ok(ToolOutput::new(none));
        }
        let hits: Vec<ChatHit> = hits.into_iter().take(HITS).map(shortened).collect();
        let text = serde_json::to_string(&hits);
        text.map(ToolOutput::new)
            .map_err(|error| ToolError::Failed(error.to_string()))
    }
}

fn shortened(hit: ChatHit) -> ChatHit {
    let excerpt = match hit.excerpt.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}…", &hit.excerpt[..end]),
        None => hit.excerpt,
    };
    ChatHit { excerpt, ..hit }
}

#[cfg(test)]
pub mod tests {
    use std::time::Duration;

    use super::*;
    use crate::process::tests::within;

    /// A store without chats.
    pub struct NoChats;

    impl ChatSearch for NoChats {
        fn search(&self, _: &str, _: usize, _: Option<i64>) -> Result<Vec<ChatHit>, String> {
            Ok(Vec::new())
        }
    }

    /// A store with more hits than it was asked for.
    struct ManyChats;

    impl ChatSearch for ManyChats {
        fn search(
            &self,
            query: &str,
            limit: usize,
            _: Option<i64>,
        ) -> Result<Vec<ChatHit>, String> {
            if query == "broken" {
                return Err("The chats cannot be read.".to_owned());
            }
            let hit = ChatHit {
                title: query.to_owned(),
                date: "2026-11-28".to_owned(),
                who: Some(Role::User),
                excerpt: "ü".repeat(500),
            };
            Ok(vec![hit; limit + 5])
        }
    }

    fn found(chats: impl ChatSearch + 'static, query: &str) -> Result<String, ToolError> {
        let arguments = Map::from_iter([("query".to_owned(), query.into())]);
        let tool = SearchChats::new(Arc::new(chats));
        let output = within(Duration::from_secs(1), |run| tool.run(&arguments, run));
        output.map(|output| output.text)
    }

    #[test]
    fn hits_are_json_and_few_and_short() {
        let found = found(ManyChats, "bread").expect("hits");
        let hits: Value = serde_json::from_str(&found).expect("JSON");
        assert_eq!(hits.as_array().map(Vec::len), Some(HITS));
        let excerpt = "ü".repeat(EXCERPT) + "…";
        let hit =
            json!({ "chat": "bread", "date": "2026-11-28", "who": "user", "excerpt": excerpt });
        assert_eq!(hits[0], hit);
    }

    #[test]
    fn a_search_without_words_hits_or_store_says_so() {
        let none = found(NoChats, "bread").expect("a text");
        assert!(none.starts_with("No chat has all"), "{none}");
        for (query, says) in [
            (" ", "search_chats: `query` is empty."),
            ("broken", "The chats cannot be read."),
        ] {
            let error = found(ManyChats, query).expect_err(query);
            assert_eq!(error.to_string(), says);
        }
    }
}
