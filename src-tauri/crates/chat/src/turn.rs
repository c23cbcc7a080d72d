//! Conversion of a branch's rows into a request to the model.

mod last_cut;

use std::borrow::Cow;
use std::sync::Arc;

use inference::{Conversation, GenerateParams, Role, Turn};
use jiff::civil::Date;
use store::{ChatId, LengthWish, MessageId, MessageRow, Progress, StoreError};

pub(crate) use self::last_cut::LastCut;
use crate::answers::AnswerStart;
use crate::failure::Failure;
use crate::fit::TurnRequest;
use crate::model_host::{ModelInfo, PromptCounter};
use crate::model_slot::ModelSlot;
use crate::preset::guidance::Guidance;
use crate::settings::Settings;
use crate::stores::Stores;
use crate::summary::SummarySource;

/// Builds requests to the open model.
pub(crate) struct TurnBuilder<'a> {
    pub stores: &'a Stores,
    pub settings: &'a Settings,
    pub info: &'a ModelInfo,
    pub counter: Option<&'a Arc<dyn PromptCounter>>,
    pub today: Date,
}

impl<'a> TurnBuilder<'a> {
    /// Returns a builder for the open model; `None` if there is none.
    pub fn new(
        stores: &'a Stores,
        settings: &'a Settings,
        model: &'a ModelSlot,
        today: Date,
    ) -> Option<TurnBuilder<'a>> {
        Some(TurnBuilder {
            stores,
            settings,
            info: model.info()?,
            counter: model.counter(),
            today,
        })
    }

    /// Returns the request for an answer, and the answer's progress so far.
    pub fn answer(
        &self,
        chat: ChatId,
        message: MessageId,
        start: AnswerStart,
    ) -> Result<(TurnRequest, Progress), Failure> {
        let (stores, info) = (self.stores, self.info);
        let mut path = stores.path(message)?;
        let row = path.pop().ok_or(StoreError::NotFound("message"))?;
        let mut today = stores.chat(chat)?.today;
        let mut thinking = row.thinks && info.can_think;
        // A summary begins after an empty thinking block, so that the header stays that of the source chat.
        let mut skips_thinking = false;
        let mut summed_up = 0;
        if let Some(leaf) = path.last().and_then(|question| question.prompt_leaf) {
            let source = SummarySource::read(stores, leaf)?;
            skips_thinking = !thinking && source.thinks && info.can_think;
            thinking |= skips_thinking;
            today = source.today;
            summed_up = source.path.iter().filter(|row| says(row)).count();
            path.splice(0..0, source.path);
        }

        let begun = !row.progress.parts.0.is_empty();
        let resume = matches!(start, AnswerStart::Resumed | AnswerStart::GoesOn) && begun;
        let mut cut = LastCut::of(&path);
        if resume {
            // A continued answer keeps its cut.
            cut.omitted = row.omitted;
        }
        path.retain(says);
        let mut messages = history(&path, row.length, thinking, &info.fingerprint);
        let mut ids: Vec<_> = path.iter().map(|row| row.id).collect();
        if resume {
            messages.push(Turn {
                open: true,
                ..history_turn(&row, true, &info.fingerprint)
            });
            ids.push(row.id);
        } else if skips_thinking {
            messages.push(Turn {
                open: true,
                thinking: Some(String::new()),
                ..Turn::new(Role::Assistant, "")
            });
            ids.push(row.id);
        }
        let guidance = self.guidance(Some(chat))?;
        let params = self.params(&guidance, thinking && !skips_thinking);
        let thought = row.progress.parts.thinking().filter(|_| resume);
        let thought = thought.map_or(0, |thinking| self.count(&thinking));
        let request = TurnRequest {
            params: GenerateParams {
                goes_on: resume && start == AnswerStart::GoesOn,
                thinking_budget: params
                    .thinking_budget
                    .map(|budget| budget.saturating_sub(thought)),
                ..params
            },
            conversation: self.conversation(&today, messages, thinking, guidance),
            ids,
            before: cut.omitted,
            whole: cut.whole,
            summed_up,
        };
        Ok((request, row.progress))
    }

    /// Returns the request as if the shown branch of a chat continued with `text`.
    pub fn draft(
        &self,
        chat: Option<ChatId>,
        text: &str,
        thinking: bool,
    ) -> Result<TurnRequest, Failure> {
        let info = self.info;
        let row = chat.map(|chat| self.stores.chat(chat)).transpose()?;
        let path = row.as_ref().map(|row| self.stores.shown_path(row));
        let mut path = path.transpose()?.unwrap_or_default();
        let thinking = thinking && info.can_think;
        let cut = LastCut::of(&path);
        path.retain(says);
        let mut messages = history(&path, None, thinking, &info.fingerprint);
        let mut ids: Vec<_> = path.iter().map(|row| row.id).collect();
        if !text.is_empty() {
            messages.push(Turn::new(Role::User, text));
            // It has no row, so no answer can have left it out.
            ids.push(ids.last().copied().unwrap_or(MessageId(0)));
        }
        // A new chat begins today.
        let today = row.map(|row| row.today).unwrap_or_default();
        let guidance = self.guidance(chat)?;
        Ok(TurnRequest {
            params: self.params(&guidance, thinking),
            conversation: self.conversation(&today, messages, thinking, guidance),
            ids,
            before: cut.omitted,
            whole: cut.whole,
            summed_up: 0,
        })
    }

    /// Resolves the guidance of a chat, or of the next new one.
    pub fn guidance(&self, chat: Option<ChatId>) -> Result<Guidance, Failure> {
        Guidance::of(self.stores, self.settings, chat)
    }

    pub fn conversation(
        &self,
        today: &str,
        messages: Vec<Turn>,
        thinking: bool,
        Guidance { instructions, .. }: Guidance,
    ) -> Conversation {
        Conversation {
            messages,
            instructions: Some(instructions).filter(|text| !text.is_empty()),
            thinking,
            today: today.parse().unwrap_or(self.today),
        }
    }

    /// Counts the tokens of a text; 0 without a counter.
    fn count(&self, text: &str) -> usize {
        self.counter.map_or(0, |counter| counter.count(text))
    }

    pub fn params(&self, guidance: &Guidance, thinking: bool) -> GenerateParams {
        let (settings, info) = (self.settings, self.info);
        GenerateParams {
            sampling: guidance.sampling.over(info.sampling.of(thinking)),
            max_tokens: settings.max_tokens.map(|tokens| tokens as usize),
            thinking_budget: settings
                .thinking_budget
                .filter(|_| info.can_think)
                .map(|tokens| tokens as usize),
            goes_on: false,
            lookup: settings.lookup,
            stops_repetition: true,
        }
    }
}

/// Returns whether it contributes to the prompt. An answer without text and calls does not: it failed, or was stopped
/// before it began.
pub(crate) fn says(row: &MessageRow) -> bool {
    !said(row).is_empty() || row.role == Role::Assistant && !row.progress.parts.calls().is_empty()
}

/// Returns what a message contributes besides its thinking: the text, or the results of tools.
fn said(row: &MessageRow) -> Cow<'_, str> {
    let parts = &row.progress.parts;
    match row.role {
        Role::Tool => parts.results().unwrap_or_default(),
        Role::System | Role::User | Role::Assistant => parts.text(),
    }
}

/// Returns the messages of a branch for the prompt: each question with the requested length of its answer. `length`:
/// that of the next answer.
fn history(
    path: &[MessageRow],
    length: Option<LengthWish>,
    thinking: bool,
    model: &str,
) -> Vec<Turn> {
    let lengths = path.iter().skip(1).map(|row| row.length).chain([length]);
    path.iter()
        .zip(lengths)
        .map(|(row, length)| asking_for(length, history_turn(row, thinking, model)))
        .collect()
}

/// Appends the requested length of the answer to a question.
pub(crate) fn asking_for(length: Option<LengthWish>, question: Turn) -> Turn {
    match length {
        Some(length) => Turn {
            text: format!("{}\n\n{}", question.text, in_words(length)),
            ..question
        },
        None => question,
    }
}

/// Returns the same words in every later prompt of the branch, so that its KV cache matches.
fn in_words(length: LengthWish) -> &'static str {
    match length {
        LengthWish::Shorter => "Keep the answer short, and in the language of this message.",
        LengthWish::Longer => {
            "Answer at length and in more detail, and in the language of this message."
        }
    }
}

/// Returns a message for the prompt. Without thinking mode, earlier thinking is left out: the template would put an
/// empty block beside it.
pub(crate) fn history_turn(row: &MessageRow, thinking: bool, model: &str) -> Turn {
    let progress = &row.progress;
    let thought = progress.parts.thinking();
    let stripped = !thinking && thought.is_some();
    let same_model = progress.model.as_deref() == Some(model);
    let verbatim = !stripped && same_model && !progress.tokens.is_empty();
    Turn {
        role: row.role,
        text: said(row).into_owned(),
        thinking: thought.filter(|_| !stripped).map(Cow::into_owned),
        calls: match row.role {
            Role::Assistant => progress.parts.calls(),
            Role::System | Role::User | Role::Tool => Vec::new(),
        },
        ids: verbatim.then(|| progress.tokens.clone()),
        open: false,
    }
}

#[cfg(test)]
mod tests {
    use inference::{Part, Parts};
    use jiff::civil::date;
    use store::{MessageState, NewMessage, Store};

    use super::*;
    use crate::branches;
    use crate::model_slot::tests::info;
    use crate::stores::tests::add_answer;

    fn builder<'a>(
        stores: &'a Stores,
        settings: &'a Settings,
        info: &'a ModelInfo,
    ) -> TurnBuilder<'a> {
        TurnBuilder {
            stores,
            settings,
            info,
            counter: None,
            today: date(2026, 3, 6),
        }
    }

    /// Ends an answer with text that this model generated.
    fn write(store: &Store, answer: MessageId, model: &str) -> Result<(), StoreError> {
        let progress = Progress {
            parts: Parts::of_answer(Some("Hm.".to_owned()), "In spruces."),
            tokens: vec![7, 8],
            model: Some(model.to_owned()),
            ..Progress::default()
        };
        store.messages().reopen(answer)?;
        store.messages().journal(answer, &progress)?;
        store
            .messages()
            .end(answer, MessageState::Stopped, None, None)
    }

    #[test]
    fn a_draft_follows_what_was_said_in_the_ids_of_the_same_model() -> Result<(), Failure> {
        let stores = Stores::new(Store::in_memory()?)?;
        let (settings, info) = (Settings::default(), info("a"));
        let turns = builder(&stores, &settings, &info);
        let (chat, answer) = add_answer(&stores.disk)?;
        let draft = |thinking| turns.draft(Some(chat), "And when?", thinking);
        // An answer without text is left out.
        assert_eq!(draft(true)?.conversation.messages.len(), 2);
        for (model, ids) in [("a", Some(vec![7, 8])), ("b", None)] {
            write(&stores.disk, answer, model)?;
            let messages = draft(true)?.conversation.messages;
            assert_eq!(messages.len(), 3);
            assert_eq!(messages[1].ids, ids);
            assert_eq!(messages[1].thinking.as_deref(), Some("Hm."));
            assert_eq!(messages[2].text, "And when?");
        }
        assert_eq!(draft(false)?.conversation.messages[1].thinking, None);
        assert_eq!(draft(true)?.conversation.today, date(2026, 3, 5));
        Ok(())
    }

    #[test]
    fn a_continued_answer_is_open_and_keeps_its_cut() -> Result<(), Failure> {
        let stores = Stores::new(Store::in_memory()?)?;
        let (settings, info) = (Settings::default(), info("a"));
        let turns = builder(&stores, &settings, &info);
        let (chat, answer) = add_answer(&stores.disk)?;
        write(&stores.disk, answer, "a")?;
        let omitted = store::OmittedRow {
            messages: 4,
            kept_from: Some(answer),
            ..Default::default()
        };
        stores.disk.messages().omit(answer, &omitted)?;
        let (request, progress) = turns.answer(chat, answer, AnswerStart::GoesOn)?;
        assert!(request.conversation.messages[1].open);
        assert!(request.params.goes_on);
        assert_eq!(request.before, omitted);
        assert_eq!(progress.parts.text(), "In spruces.");
        Ok(())
    }

    #[test]
    fn every_role_is_in_the_prompt() -> Result<(), Failure> {
        let stores = Stores::new(Store::in_memory()?)?;
        let (settings, info) = (Settings::default(), info("a"));
        let turns = builder(&stores, &settings, &info);
        let (chat, asked) = add_answer(&stores.disk)?;
        let call = Part::ToolCall {
            id: "call-1".to_owned(),
            name: "weigh".to_owned(),
            arguments: "{}".to_owned(),
        };
        let result = Part::ToolResult {
            id: "call-1".to_owned(),
            text: "6 g".to_owned(),
        };
        let mut parent = Some(asked);
        for (role, parts) in [
            (Role::System, Parts::of_text("Be brief.")),
            (Role::Assistant, Parts(vec![call.clone()])),
            (Role::Tool, Parts(vec![result])),
        ] {
            parent = Some(stores.disk.messages().add(&NewMessage {
                chat,
                parent,
                role,
                state: MessageState::Done,
                parts,
                thinks: false,
                created_at: 9,
            })?);
        }
        let request = turns.draft(Some(chat), "", false)?;
        let messages = request.conversation.messages.iter();
        let said: Vec<_> = messages.map(|turn| (turn.role, &*turn.text)).collect();
        assert_eq!(
            said[1..],
            [
                (Role::System, "Be brief."),
                (Role::Assistant, ""),
                (Role::Tool, "6 g")
            ]
        );
        assert_eq!(
            request.conversation.messages[2].calls,
            Parts(vec![call]).calls()
        );
        Ok(())
    }

    #[test]
    fn a_wish_for_the_length_follows_its_question() -> Result<(), Failure> {
        let stores = Stores::new(Store::in_memory()?)?;
        let (settings, info) = (Settings::default(), info("a"));
        let turns = builder(&stores, &settings, &info);
        let (chat, answer) = add_answer(&stores.disk)?;
        let asked = stores.message(answer)?.parent.expect("a question");
        let again = branches::add_answer(&stores.disk, chat, asked, false, 9)?;
        let shorter = LengthWish::Shorter;
        stores.disk.messages().set_length(again, shorter)?;
        let asked = |answer| {
            let (request, _) = turns.answer(chat, answer, AnswerStart::New)?;
            Ok::<_, Failure>(request.conversation.messages[0].text.clone())
        };
        assert!(asked(again)?.ends_with(in_words(shorter)));
        assert!(!asked(answer)?.ends_with(in_words(shorter)));
        Ok(())
    }
}
