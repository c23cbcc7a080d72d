//! The pages as they are built in, and their topics.

use std::collections::HashMap;

use crate::shown::shown;

/// A page: its Markdown, and the wordings of its topics.
struct Page {
    name: &'static str,
    text: &'static str,
    wordings: &'static str,
}

macro_rules! pages {
    ($($name:literal),+ $(,)?) => {
        /// All pages, as they are listed.
        const PAGES: &[Page] = &[$(Page {
            name: $name,
            text: include_str!(concat!("../../../guide/", $name, ".md")),
            wordings: include_str!(concat!("../../../guide/wordings/", $name, ".txt")),
        }),+];
    };
}

pages![
    "start",
    "chats",
    "messages",
    "answers",
    "models",
    "settings",
    "tools",
    "local-api",
    "files",
    "command-line",
    "verify",
];

/// Requests that are not about the app, one a line.
pub const OTHER: &str = include_str!("../../../guide/wordings/other.txt");

/// A topic of the guide.
#[derive(Debug, PartialEq, Eq)]
pub struct Topic {
    /// Title in lower case with hyphens, as in the links to it.
    pub id: String,
    /// Name of its page's file, without `.md`.
    pub page: &'static str,
    /// Title of its page.
    pub page_title: &'static str,
    pub title: &'static str,
    /// Answer: one paragraph of Markdown.
    pub answer: &'static str,
    /// Rest of the section, in Markdown; often empty.
    pub details: &'static str,
    /// Questions about it.
    pub(crate) wordings: Vec<&'static str>,
}

impl Topic {
    /// Returns the answer as Markdown for a chat.
    pub fn shown_answer(&self) -> String {
        shown(self.answer)
    }

    /// Returns the details as Markdown for a chat.
    pub fn shown_details(&self) -> String {
        shown(self.details)
    }

    /// Returns the texts by which it is found: its title and its wordings.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &'static str> {
        [self.title]
            .into_iter()
            .chain(self.wordings.iter().copied())
    }
}

/// Returns the topics of all pages.
pub fn topics() -> Vec<Topic> {
    PAGES.iter().flat_map(topics_of).collect()
}

fn topics_of(page: &Page) -> Vec<Topic> {
    let mut sections = page.text.split("\n## ");
    let head = sections.next().unwrap_or_default();
    let page_title = head.trim_start_matches("# ").trim();
    let wordings: HashMap<&str, &str> = page
        .wordings
        .split("## ")
        .filter_map(|section| section.split_once('\n'))
        .collect();
    sections
        .map(|section| {
            let (title, text) = section.split_once('\n').unwrap_or((section, ""));
            let text = text.trim();
            let (answer, details) = text.split_once("\n\n").unwrap_or((text, ""));
            let id = id_of(title);
            Topic {
                wordings: wordings.get(&*id).unwrap_or(&"").lines().collect(),
                id,
                page: page.name,
                page_title,
                title,
                answer,
                details: details.trim(),
            }
        })
        .collect()
}

/// Returns the id of a title: the anchor that Markdown viewers give it.
fn id_of(title: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-');
    let kept: String = title.to_lowercase().chars().filter(kept).collect();
    kept.replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use super::*;
    use crate::words::words;

    #[test]
    fn the_folder_has_the_pages_that_are_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../guide");
        let names = |folder: &Path, extension: &str| -> BTreeSet<String> {
            let entries = std::fs::read_dir(folder).expect("the pages");
            let names = entries.map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("UTF-8")
            });
            names
                .filter_map(|name| name.strip_suffix(extension).map(str::to_owned))
                .collect()
        };
        let built_in: BTreeSet<String> = PAGES.iter().map(|page| page.name.to_owned()).collect();
        assert_eq!(names(&folder, ".md"), built_in);
        let mut wordings = names(&folder.join("wordings"), ".txt");
        for name in ["other", "synonyms"] {
            assert!(wordings.remove(name), "{name}");
        }
        assert_eq!(wordings, built_in);
    }

    #[test]
    fn each_topic_has_an_answer_and_wordings_of_its_own() {
        let topics = topics();
        assert!(topics.len() >= 120, "{}", topics.len());
        let mut ids = BTreeSet::new();
        let mut owners = BTreeMap::new();
        let mut headings = 0;
        for topic in &topics {
            assert!(ids.insert(&topic.id), "{} occurs twice", topic.id);
            assert!(topic.answer.len() > 40, "{}: {:?}", topic.id, topic.answer);
            assert!(
                topic.answer.len() < 420,
                "{}: {}",
                topic.id,
                topic.answer.len()
            );
            let is_paragraph =
                !topic.answer.starts_with(['|', '-', '#']) && !topic.answer.starts_with("```");
            assert!(is_paragraph, "{}: {}", topic.id, topic.answer);
            assert!(
                topic.wordings.len() >= 30,
                "{}: {}",
                topic.id,
                topic.wordings.len()
            );
            for wording in &topic.wordings {
                let owner = owners.insert(words(wording).join(" "), &topic.id);
                assert_eq!(
                    owner, None,
                    "{}: {wording:?} is of two topics, or twice in one",
                    topic.id
                );
            }
        }
        for page in PAGES {
            headings += page
                .wordings
                .lines()
                .filter(|line| line.starts_with("## "))
                .count();
        }
        assert_eq!(
            headings,
            topics.len(),
            "wordings of a topic that does not exist"
        );
        for request in OTHER.lines() {
            assert!(
                !owners.contains_key(&words(request).join(" ")),
                "{request:?} is of a topic, too"
            );
        }
    }

    #[test]
    fn links_lead_to_topics() {
        let topics = topics();
        for topic in &topics {
            let text = format!("{} {}", topic.answer, topic.details);
            for link in text
                .split("](")
                .skip(1)
                .filter_map(|rest| rest.split(')').next())
            {
                if link.starts_with("https://") {
                    continue;
                }
                let (page, id) = link.split_once('#').unwrap_or((link, ""));
                let page = if page.is_empty() {
                    topic.page
                } else {
                    page.trim_end_matches(".md")
                };
                let is_there = |it: &Topic| it.page == page && (id.is_empty() || it.id == id);
                assert!(topics.iter().any(is_there), "{}: {link}", topic.id);
            }
        }
    }
}
