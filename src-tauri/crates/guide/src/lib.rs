//! The guide to the app, and the topic that a question about the app asks for.
//!
//! The pages are the Markdown files in `src-tauri/guide`, and are built in. A topic is a section of one: its first
//! paragraph is the answer, the rest are details. In `src-tauri/guide/wordings` each topic has the questions that people
//! ask about it, from which the [`Matcher`] learns; `other.txt` there has requests that are not about the app.

mod about_app;
mod matcher;
mod pages;
mod shown;
mod words;

use std::sync::{LazyLock, OnceLock};

use matcher::{Evidence, Matcher};
pub use pages::Topic;
pub use shown::replace_links;

/// Maximum bytes of a question; a longer text is not one about the app.
const QUESTION_BYTES: usize = 600;

/// The topics, and what finds them.
pub struct Guide {
    topics: Vec<Topic>,
    /// Built when the first question comes.
    matcher: OnceLock<Matcher>,
}

/// Answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match<'g> {
    /// The question is about the app, and this topic answers it.
    Sure(&'g Topic),
    /// The question may be about this topic.
    Unsure(&'g Topic),
    /// The question is not about the app.
    None,
}

impl<'g> Match<'g> {
    /// Returns the topic if it is sure.
    pub fn sure(self) -> Option<&'g Topic> {
        match self {
            Match::Sure(topic) => Some(topic),
            Match::Unsure(_) | Match::None => None,
        }
    }
}

impl Guide {
    /// Returns the guide that is built in.
    pub fn shared() -> &'static Guide {
        static GUIDE: LazyLock<Guide> = LazyLock::new(|| Guide {
            topics: pages::topics(),
            matcher: OnceLock::new(),
        });
        &GUIDE
    }

    /// Returns all topics, page by page.
    pub fn topics(&self) -> &[Topic] {
        &self.topics
    }

    /// Finds a topic by its id.
    pub fn topic(&self, id: &str) -> Option<&Topic> {
        self.topics.iter().find(|topic| topic.id == id)
    }

    /// Returns the topics that fit what was typed so far, the best first.
    pub fn search(&self, typed: &str) -> Vec<&Topic> {
        if typed.len() > QUESTION_BYTES {
            return Vec::new();
        }
        let is_titled = |topic: &&Topic| words::begin(topic.title, typed);
        let mut found: Vec<&Topic> = self.topics.iter().filter(is_titled).collect();
        for at in self.matcher().ranked(typed) {
            let topic = &self.topics[at];
            if !found.contains(&topic) {
                found.push(topic);
            }
        }
        found
    }

    /// Finds the topic that a question asks for.
    pub fn answer(&self, question: &str) -> Match<'_> {
        if question.len() > QUESTION_BYTES {
            return Match::None;
        }
        match self.matcher().find(question) {
            Evidence::Sure(at) => Match::Sure(&self.topics[at]),
            Evidence::Unsure(at) => Match::Unsure(&self.topics[at]),
            Evidence::None => Match::None,
        }
    }

    fn matcher(&self) -> &Matcher {
        self.matcher
            .get_or_init(|| Matcher::new(&self.topics, pages::OTHER))
    }
}
