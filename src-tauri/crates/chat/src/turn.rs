//! Conversion of a branch's rows into a request to the model.

mod last_cut;

use std::borrow::Cow;
use std::sync::Arc;

use inference::{Constraint, Conversation, GenerateParams, Parts, Role, ToolDefinition, Turn};
use jiff::civil::Date;
use store::{ChatId, LengthWish, MessageId, MessageRow, Progress, StoreError};
use tools::{Registry, Tool};

pub(crate) use self::last_cut::LastCut;
use crate::answers::AnswerStart;
use crate::failure::Failure;
use crate::fit::TurnRequest;
use crate::model_host::{ModelInfo, PromptCounter};
use crate::model_slot::ModelSlot;
use crate::preset::guidance::Guidance;
use crate::rounds::{self, ROUND_END, Round};
use crate::settings::Settings;
use crate::stores::Stores;
use crate::summary::SummarySource;

/// Builds requests to the open model.
pub(crate) struct TurnBuilder<'a> {
    pub stores: &'a Stores,
    pub settings: &'a Settings,
    pub info: &'a ModelInfo,
    pub counter: Option<&'a Arc<dyn PromptCounter>>,
    pub tools: &'a Registry,
    pub today: Date,
}

impl<'a> TurnBuilder<'a> {
    /// Returns a builder for the open model; `None` if there is none.
    pub fn new(
        stores: &'a Stores,
        settings: &'a Settings,
        model: &'a ModelSlot,
        tools: &'a Registry,
        today: Date,
    ) -> Option<TurnBuilder<'a>> {
        Some(TurnBuilder {
            stores,
            settings,
            info: model.info()?,
            counter: model.counter(),
            tools,
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
        let history = history(&path, row.length, thinking, &info.fingerprint);
        let (mut ids, mut messages): (Vec<_>, Vec<_>) = history.into_iter().unzip();
        if resume {
            for turn in begun_turns(&row, &info.fingerprint) {
                messages.push(turn);
                ids.push(row.id);
            }
        } else if skips_thinking {
            messages.push(Turn {
                open: true,
                thinking: Some(String::new()),
                ..Turn::new(Role::Assistant, "")
            });
            ids.push(row.id);
        }
        let guidance = self.guidance(Some(chat))?;
        let rounds = rounds::completed(&row.progress.parts);
        let params = self.params(&guidance, thinking && !skips_thinking, rounds);
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
        let history = history(&path, None, thinking, &info.fingerprint);
        let (mut ids, mut messages): (Vec<_>, Vec<_>) = history.into_iter().unzip();
        if !text.is_empty() {
            messages.push(Turn::new(Role::User, text));
            // It has no row, so no answer can have left it out.
            ids.push(ids.last().copied().unwrap_or(MessageId(0)));
        }
        // A new chat begins today.
        let today = row.map(|row| row.today).unwrap_or_default();
        let guidance = self.guidance(chat)?;
        Ok(TurnRequest {
            params: self.params(&guidance, thinking, 0),
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
        guidance: Guidance,
    ) -> Conversation {
        let tools = self.definitions(&guidance);
        Conversation {
            messages,
            instructions: Some(guidance.instructions).filter(|text| !text.is_empty()),
            thinking,
            tools,
            today: today.parse().unwrap_or(self.today),
        }
    }

    /// Counts the tokens of a text; 0 without a counter.
    fn count(&self, text: &str) -> usize {
        self.counter.map_or(0, |counter| counter.count(text))
    }

    /// Returns the tools that are on, as far as they are there and the model can call them.
    pub fn offered(&self, guidance: &Guidance) -> Vec<Arc<dyn Tool>> {
        if !self.info.can_call_tools || guidance.tools.is_empty() {
            return Vec::new();
        }
        let mut tools = self.tools.tools();
        tools.retain(|tool| guidance.tools.contains(&tool.info().definition.name));
        tools
    }

    fn definitions(&self, guidance: &Guidance) -> Arc<[ToolDefinition]> {
        let tools = self.offered(guidance).into_iter();
        tools.map(|tool| tool.info().definition.clone()).collect()
    }

    /// Returns the parameters of an answer, after this number of rounds of calls.
    pub fn params(&self, guidance: &Guidance, thinking: bool, rounds: usize) -> GenerateParams {
        let tools = self.definitions(guidance);
        let constraint = if tools.is_empty() {
            None
        } else if rounds < self.settings.tool_rounds as usize {
            let required = false;
            Some(Constraint::Calls { tools, required })
        } else {
            Some(Constraint::NoCalls)
        };
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
            logprobs: None,
            constraint,
        }
    }
}

/// Returns whether it contributes to the prompt. An answer without text and calls does not: it failed, or was stopped
/// before it began.
pub(crate) fn says(row: &MessageRow) -> bool {
    !said(row).is_empty()
        || row.role == Role::Assistant && rounds::calls(&row.progress.parts).next().is_some()
}

/// Returns what a message contributes besides its thinking: the text, or the results of tools.
fn said(row: &MessageRow) -> Cow<'_, str> {
    let parts = &row.progress.parts;
    match row.role {
        Role::Tool => parts.results().unwrap_or_default(),
        Role::System | Role::User | Role::Assistant => parts.text(),
    }
}

/// Returns the messages of a branch for the prompt, with their ids: each question with the requested length of its
/// answer. `length`: that of the next answer.
fn history(
    path: &[MessageRow],
    length: Option<LengthWish>,
    thinking: bool,
    model: &str,
) -> Vec<(MessageId, Turn)> {
    let followers = path.iter().skip(1).map(Some).chain([None]);
    let turns = path.iter().zip(followers).flat_map(|(row, next)| {
        let length = next.map_or(length, |next| next.length);
        let turns = history_turns(row, next, thinking, model).into_iter();
        turns.map(move |turn| (row.id, asking_for(length, turn)))
    });
    turns.collect()
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

/// Returns a message for the prompt: an answer with calls is several turns, with the results between them. Without
/// thinking mode, earlier thinking is left out: the template would put an empty block beside it. `next`: the message that
/// follows, which holds the results in chats of other programs.
pub(crate) fn history_turns(
    row: &MessageRow,
    next: Option<&MessageRow>,
    thinking: bool,
    model: &str,
) -> Vec<Turn> {
    let parts = &row.progress.parts;
    let rounds = match row.role {
        Role::Assistant if next.is_some_and(|next| next.role == Role::Tool) => {
            rounds::rounds(parts)
        }
        Role::Assistant => rounds::whole_rounds(parts),
        role => return vec![Turn::new(role, said(row))],
    };
    answer_turns(row, rounds, thinking, model)
}

/// Returns an answer that goes on: its last turn is open, unless it is a result.
pub(crate) fn begun_turns(row: &MessageRow, model: &str) -> Vec<Turn> {
    let rounds = rounds::rounds(&row.progress.parts);
    let mut turns = answer_turns(row, rounds, true, model);
    if let Some(last) = turns.last_mut() {
        last.open = last.role == Role::Assistant;
    }
    turns
}

fn answer_turns(row: &MessageRow, rounds: Vec<Round>, thinking: bool, model: &str) -> Vec<Turn> {
    let progress = &row.progress;
    let is_stripped = !thinking && progress.parts.thinking().is_some();
    let has_ids = !is_stripped && progress.model.as_deref() == Some(model);
    let mut ids: Vec<_> = progress.tokens.split(|id| *id == ROUND_END).collect();
    // A round that has not begun.
    ids.truncate(rounds.len());
    let has_ids = has_ids && ids.len() == rounds.len();
    let mut turns = Vec::new();
    for (at, Round { written, results }) in rounds.into_iter().enumerate() {
        let ids = ids.get(at).filter(|ids| has_ids && !ids.is_empty());
        if written != Parts::default() {
            let thought = written.thinking().filter(|_| !is_stripped);
            turns.push(Turn {
                thinking: thought.map(Cow::into_owned),
                calls: written.calls(),
                ids: ids.map(|ids| ids.to_vec()),
                ..Turn::new(Role::Assistant, written.text())
            });
        }
        let results = results.into_iter();
        turns.extend(results.map(|result| Turn::new(Role::Tool, result)));
    }
    turns
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use inference::{Part, Parts, ToolOutcome};
    use jiff::civil::date;
    use store::{MessageState, NewMessage, Store};

    use super::*;
    use crate::branches;
    use crate::model_slot::tests::info;
    use crate::stores::tests::add_answer;

    static NO_TOOLS: LazyLock<Registry> = LazyLock::new(Registry::default);

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
            tools: &NO_TOOLS,
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
            outcome: ToolOutcome::Done,
            server: None,
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
