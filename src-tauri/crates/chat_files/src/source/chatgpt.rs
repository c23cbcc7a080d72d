//! ChatGPT: `conversations.json`, a list of chats, each a tree of nodes.
//!
//! One message of ours may be several nodes there: thinking, calls of tools, their results, and pieces of the answer.
//! They are gathered on the way down the tree, and become an answer where the user speaks again or the branch ends.
//!
//! Reads texts, voice, thinking (`thoughts`), documents of the canvas with their changes and comments, code and its
//! output (`code`, `execution_output`), quotations (`tether_quote`), and notes of images, recordings and attachments.
//! Other tool calls and their results (searches, web pages, `system_error`) are read if a turn has nothing else. Skips
//! instructions and memory (`user_editable_context`, `bio`), hidden nodes, summaries of thinking (`reasoning_recap`),
//! marks of sources, feedback, models, and the files themselves, which an export has beside its chats.

mod spoken;
mod tree;

use std::collections::HashMap;

use jiff::tz::TimeZone;
use store::Role;

use self::spoken::{Spoken, is_question, spoken};
use self::tree::NodeTree;
use super::Source;
use super::draft::{About, ChatDraft, ForeignChat, Outcome, Said};
use super::value::ForeignValue;
use crate::limits::{CHAT_TEXT, CHAT_VALUES};

/// Returns true if an object is a chat of this program.
pub(crate) fn is_chat(chat: &ForeignValue) -> bool {
    ["mapping", "current_node", "conversation_id"]
        .iter()
        .any(|key| chat.has(key))
}

pub(crate) fn chat(chat: &ForeignValue, zone: &TimeZone) -> ForeignChat {
    let about = About {
        source: Source::ChatGpt,
        id: chat.label("conversation_id").or_else(|| chat.label("id")),
        title: chat.label("title").unwrap_or_default(),
        created_at: chat.moment("create_time"),
        updated_at: chat.moment("update_time"),
    };
    let mut walk = Walk::of(NodeTree::of(chat.get("mapping")));
    if chat
        .get("mapping")
        .is_some_and(|it| it.as_text().is_some() || it.is_bare())
    {
        walk.draft.unread += 1;
    }
    if walk.run().is_err() {
        return ForeignChat {
            title: about.title,
            unread: walk.draft.unread,
            outcome: Outcome::TooLarge,
        };
    }
    let leaf = walk.leaf(chat.text("current_node"));
    walk.draft.finish(about, leaf, zone)
}

/// A walk down the tree that gathers answers.
struct Walk<'a> {
    tree: NodeTree<'a>,
    draft: ChatDraft,
    pieces: Vec<AnswerPiece>,
    /// The message of each node.
    places: HashMap<usize, u32>,
    /// Budget of the answers: pieces, and bytes. An answer that branches is written once per branch.
    pieces_left: usize,
    text_left: usize,
}

/// The part of an answer in a node, and the previous part.
struct AnswerPiece {
    said: Said,
    node: usize,
    before: Option<usize>,
    /// The message that ends with this part, once it is added.
    place: Option<u32>,
}

/// A node to visit, the message before it, and the last part of the answer that is being gathered.
struct TreeStep {
    node: usize,
    parent: Option<u32>,
    answer: Option<usize>,
}

struct TooLarge;

impl<'a> Walk<'a> {
    fn of(tree: NodeTree<'a>) -> Walk<'a> {
        Walk {
            tree,
            draft: ChatDraft::default(),
            pieces: Vec::new(),
            places: HashMap::new(),
            pieces_left: CHAT_VALUES,
            text_left: CHAT_TEXT,
        }
    }

    fn run(&mut self) -> Result<(), TooLarge> {
        let mut seen = vec![false; self.tree.nodes.len()];
        // Nodes in a circle have no root: the first of them begins.
        for root in self.tree.roots.clone().into_iter().chain(0..seen.len()) {
            let mut steps = vec![TreeStep {
                node: root,
                parent: None,
                answer: None,
            }];
            while let Some(step) = steps.pop() {
                if !std::mem::replace(&mut seen[step.node], true) {
                    self.take(step, &mut steps)?;
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, mut step: TreeStep, steps: &mut Vec<TreeStep>) -> Result<(), TooLarge> {
        match spoken(self.tree.nodes[step.node]) {
            Spoken::User(said) => {
                self.end_answer(&mut step)?;
                if !said.is_empty() {
                    let place = self.draft.add(step.parent, Role::User, said);
                    self.places.insert(step.node, place);
                    step.parent = Some(place);
                }
            }
            Spoken::Answer(said) => {
                self.pieces.push(AnswerPiece {
                    said,
                    node: step.node,
                    before: step.answer,
                    place: None,
                });
                step.answer = Some(self.pieces.len() - 1);
            }
            Spoken::Nothing => {}
            Spoken::Unread => self.draft.unread += 1,
        }
        let children = &self.tree.children[step.node];
        // All edited versions of the next question follow one answer.
        if children
            .iter()
            .all(|child| is_question(self.tree.nodes[*child]))
        {
            self.end_answer(&mut step)?;
        }
        let children = self.tree.children[step.node].iter().rev();
        steps.extend(children.map(|child| TreeStep {
            node: *child,
            parent: step.parent,
            answer: step.answer,
        }));
        Ok(())
    }

    fn end_answer(&mut self, step: &mut TreeStep) -> Result<(), TooLarge> {
        let Some(last) = step.answer.take() else {
            return Ok(());
        };
        if let Some(place) = self.pieces[last].place {
            step.parent = Some(place);
            return Ok(());
        }
        let mut of = Vec::new();
        let mut at = Some(last);
        while let Some(piece) = at {
            of.push(piece);
            at = self.pieces[piece].before;
            self.pieces_left = self.pieces_left.checked_sub(1).ok_or(TooLarge)?;
        }
        let mut answer = Said::default();
        for piece in of.iter().rev() {
            let said = &self.pieces[*piece].said;
            let length = said.text.len() + said.thinking.len() + said.tools.len();
            self.text_left = self.text_left.checked_sub(length).ok_or(TooLarge)?;
            answer.append(said);
        }
        if answer.is_empty() {
            return Ok(());
        }
        let place = self.draft.add(step.parent, Role::Assistant, answer);
        let nodes = of.iter().map(|piece| (self.pieces[*piece].node, place));
        self.places.extend(nodes);
        self.pieces[last].place = Some(place);
        step.parent = Some(place);
        Ok(())
    }

    /// The message at a node, or at its nearest ancestor with one.
    fn leaf(&self, current: Option<&str>) -> Option<u32> {
        let mut at = self.tree.by_id.get(current?).copied();
        // A circle of parents has no end.
        for _ in 0..=self.tree.nodes.len() {
            let node = at?;
            if let Some(place) = self.places.get(&node) {
                return Some(*place);
            }
            at = self.tree.parents[node];
        }
        None
    }
}
