//! Requests for the usage of the context. Of a branch that was counted before, only later messages are read.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use inference::Turn;
use store::{ChatId, MessageId, MessageRow};

use crate::answers::AnswerQueue;
use crate::context::ContextUsage;
use crate::counting::CountRequest;
use crate::failure::Failure;
use crate::fit::Limits;
use crate::model_host::ModelInfo;
use crate::stores::Stores;
use crate::summary::SummarySource;
use crate::turn::{LastCut, TurnBuilder, asking_for, history_turns, says};

/// Receives `None` if messages are missing: all must then be counted again.
pub(crate) type CountReply = Receiver<Result<Option<ContextUsage>, Failure>>;

/// Requests counts of the context from the counting thread, which holds the messages of a branch.
pub(crate) struct ContextCounter {
    requests: Sender<CountRequest>,
    /// The branch that the thread holds.
    counted: Option<CountedBranch>,
}

/// Messages of a branch that the counting thread holds.
struct CountedBranch {
    place: CountedPlace,
    /// Message before the last one, which may grow.
    up_to: Option<MessageId>,
    /// Cut of the answers up to there.
    cut: LastCut,
}

/// Place of the counted messages.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CountedPlace {
    chat: Option<ChatId>,
    /// The model's fingerprint.
    model: String,
    thinking: bool,
}

/// The next message of a chat, or of a new one.
pub(crate) struct NextMessage<'a> {
    pub chat: Option<ChatId>,
    pub draft: &'a str,
    /// Tokens of attached texts.
    pub pasted: u32,
    pub thinking: bool,
}

impl ContextCounter {
    pub fn new(requests: Sender<CountRequest>) -> ContextCounter {
        ContextCounter {
            requests,
            counted: None,
        }
    }

    /// Has all messages counted again: some have changed.
    pub fn forget(&mut self) {
        self.counted = None;
    }

    /// Requests a count of the next prompt of a chat; `None` if nothing counts.
    pub fn count(
        &mut self,
        turns: &TurnBuilder<'_>,
        answers: &AnswerQueue,
        next: &NextMessage<'_>,
    ) -> Result<Option<CountReply>, Failure> {
        let NextMessage { chat, thinking, .. } = *next;
        let TurnBuilder { stores, info, .. } = *turns;
        let Some(counter) = turns.counter.cloned() else {
            return Ok(None);
        };
        let row = chat.map(|chat| stores.chat(chat));
        let row = row.transpose()?;
        let leaf = row
            .as_ref()
            .and_then(|row| answers.unsaved.leaf(row.id).or(row.leaf));
        let summary = leaf.and_then(|leaf| summary_under_way(stores, answers, leaf));
        let thinking = summary.as_ref().map_or(thinking, |of| of.thinks) && info.can_think;
        let place = CountedPlace {
            chat,
            model: info.fingerprint.clone(),
            thinking,
        };
        let before = self.counted.take();
        let before = before.filter(|it| it.place == place && summary.is_none());
        let mut path = match leaf {
            Some(leaf) => {
                let known = before.as_ref().and_then(|it| it.up_to);
                stores.messages_with(leaf).path_after(known, leaf)?
            }
            None => Vec::new(),
        };
        let after = path.first().and_then(|row| row.parent);
        let mut cut = match before {
            Some(before) if after.is_some() => before.cut,
            _ => LastCut::default(),
        };
        let (last, others) = path.split_last().unzip();
        others
            .unwrap_or_default()
            .iter()
            .for_each(|row| cut.pass(row));
        let up_to = last.and_then(|row| row.parent);
        let counted = CountedBranch { place, up_to, cut };
        let written = last.and_then(|row| answers.buffer(row.id));
        let written = written.map(|buffer| buffer.tokens);
        if let Some(last) = last.filter(|_| written != Some(0)) {
            cut.pass(last);
        }
        let is_summary = summary.is_some();
        let today = match summary {
            Some(of) => {
                path.splice(0..0, of.path);
                of.today
            }
            None => row.map(|row| row.today).unwrap_or_default(),
        };
        let followers = path.iter().skip(1).map(Some).chain([None]);
        let guidance = turns.guidance(chat)?;
        let (reply, replied) = channel();
        let request = CountRequest {
            counter,
            max_tokens: turns.params(&guidance, thinking, 0).max_tokens,
            conversation: turns.conversation(&today, Vec::new(), thinking, guidance),
            limits: Limits::of(info),
            after,
            messages: path
                .iter()
                .zip(followers)
                .map(|(row, next)| {
                    let length = next.and_then(|next| next.length);
                    let turns = counted_turns(answers, row, next, thinking, info).into_iter();
                    let turns = turns.map(|turn| asking_for(length, turn));
                    (row.id, turns.collect())
                })
                .collect(),
            before: cut.omitted,
            whole: cut.whole,
            written: written.filter(|tokens| *tokens > 0),
            draft: next
                .draft
                .trim_start_matches(['\n', '\r'])
                .trim_end()
                .to_owned(),
            pasted: next.pasted as usize,
            reply,
        };
        // After a summary only the summary itself counts.
        self.counted = (!is_summary).then_some(counted);
        if self.requests.send(request).is_err() {
            tracing::error!("the counting thread has ended");
        }
        Ok(Some(replied))
    }
}

/// Returns the source of the summary that is being written at the end of a branch, if there is one.
fn summary_under_way(
    stores: &Stores,
    answers: &AnswerQueue,
    leaf: MessageId,
) -> Option<SummarySource> {
    answers.buffer(leaf)?;
    let messages = stores.messages_with(leaf);
    let question = messages.get(leaf).ok()?.parent?;
    let of = messages.get(question).ok()?.prompt_leaf?;
    SummarySource::read(stores, of).ok()
}

/// Returns a message as the next prompt contains it.
fn counted_turns(
    answers: &AnswerQueue,
    row: &MessageRow,
    next: Option<&MessageRow>,
    thinking: bool,
    info: &ModelInfo,
) -> Vec<Turn> {
    let turns = |row| history_turns(row, next, thinking, &info.fingerprint);
    let Some(buffer) = answers.buffer(row.id) else {
        return if says(row) { turns(row) } else { Vec::new() };
    };
    let progress = buffer.flushed(Instant::now());
    let row = MessageRow {
        progress,
        ..row.clone()
    };
    let begun = buffer.tokens > 0 || says(&row);
    if begun { turns(&row) } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use inference::{Conversation, EncodedMessage, PromptFrame};
    use jiff::civil::date;
    use store::Store;
    use tools::Registry;

    use super::*;
    use crate::branches;
    use crate::model_host::PromptCounter;
    use crate::model_slot::tests::info;
    use crate::settings::Settings;
    use crate::stores::tests::add_answer;

    /// A counter that the counting thread alone would use.
    struct Unused;

    impl PromptCounter for Unused {
        fn frame(&self, _: &Conversation) -> Result<Arc<PromptFrame>, Failure> {
            Err(Failure::other("nothing is counted"))
        }
        fn message(&self, _: &PromptFrame, _: &Turn) -> Arc<EncodedMessage> {
            Arc::default()
        }
        fn encode(&self, _: &str) -> Vec<u32> {
            Vec::new()
        }
        fn bytes(&self, _: u32) -> Vec<u8> {
            Vec::new()
        }
        fn count(&self, _: &str) -> usize {
            0
        }
        fn cached(&self, _: &[u32]) -> usize {
            0
        }
    }

    #[test]
    fn messages_that_were_counted_are_not_read_again() -> Result<(), Failure> {
        let stores = Stores::new(Store::in_memory()?)?;
        let answers = AnswerQueue::new(Duration::ZERO);
        let (settings, info, registry) = (Settings::default(), info("a"), Registry::default());
        let unused: Arc<dyn PromptCounter> = Arc::new(Unused);
        let turns = TurnBuilder {
            stores: &stores,
            settings: &settings,
            info: &info,
            counter: Some(&unused),
            today: date(2026, 3, 5),
            tools: &registry,
        };
        let (chat, answer) = add_answer(&stores.disk)?;
        let (requests, counted) = channel();
        let mut counter = ContextCounter::new(requests);
        let count = |counter: &mut ContextCounter, thinking| {
            let next = NextMessage {
                chat: Some(chat),
                draft: " And when?",
                pasted: 0,
                thinking,
            };
            counter.count(&turns, &answers, &next)?;
            let request = counted.recv().expect("a request");
            assert_eq!(request.draft, " And when?");
            Ok::<_, Failure>((request.after, request.messages.len()))
        };
        let asked = stores.message(answer)?.parent;
        assert_eq!(count(&mut counter, true)?, (None, 2));
        // The last message may grow.
        assert_eq!(count(&mut counter, true)?, (asked, 1));
        branches::add_question(&stores.disk, chat, Some(answer), "And?", true, 9)?;
        assert_eq!(count(&mut counter, true)?, (asked, 3));
        assert_eq!(count(&mut counter, false)?, (None, 4), "in another mode");
        counter.forget();
        assert_eq!(count(&mut counter, false)?, (None, 4));
        Ok(())
    }
}
