//! The calls of an answer: prepared, allowed, run and answered.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use inference::{Part, Role, ToolOutcome};
use serde_json::{Map, Value};
use store::{ChatId, MessageId, MessageRow, Progress, StoreError};
use tools::{CallAnswer, Tool, ToolError, ToolInfo, ToolOutput, ToolRun, ToolSource};

use crate::actor::spawn;
use crate::actor::state::{ChatActor, Request};
use crate::answers::unsaved::AnswerEnd;
use crate::answers::{AnswerStart, WaitingAnswer};
use crate::failure::Failure;
use crate::job::{CallRun, Report};
use crate::preset::guidance::Guidance;
use crate::rounds::{self, CallPart, ROUND_END};
use crate::settings::AllowedTool;
use crate::showing;
use crate::text;
use crate::view::{CallStatus, CallView, ChatEvent, Consent, ToolView};

/// Tool that quotes other chats.
const SEARCH: &str = "search_chats";
/// Result of a call that was stopped while it ran.
const STOPPED: &str = "The call was stopped. It may have taken effect.";
/// Result, until there is another, of a call that changes things: the app may crash while it runs.
const INTERRUPTED: &str = "The app ended while the call ran. It may have taken effect.";
const OUTSIDE: &str = "This chat has content from outside, which may have led to this call. So it is asked each time.";
/// Characters of the user's word to the model.
const MAX_REASON: usize = 500;

/// A call that can be run.
struct PreparedCall {
    tool: Arc<dyn Tool>,
    arguments: Map<String, Value>,
}

/// Result of a call, as the model is given it.
struct CallResult {
    text: String,
    outcome: ToolOutcome,
    /// MCP server that gave it.
    server: Option<String>,
}

/// Need for the user's consent, with the reason for asking each time.
struct Asking(Option<String>);

impl CallResult {
    fn failed(text: impl Into<String>) -> CallResult {
        CallResult {
            text: text.into(),
            outcome: ToolOutcome::Failed,
            server: None,
        }
    }
}

impl ChatActor {
    /// Returns whether an answer that goes on has calls to be run first.
    pub(super) fn has_open_calls(&self, waiting: &WaitingAnswer) -> bool {
        let goes_on = matches!(waiting.start, AnswerStart::Resumed | AnswerStart::GoesOn);
        let row = self
            .stores
            .message(waiting.message)
            .ok()
            .filter(|_| goes_on);
        row.is_some_and(|row| rounds::open_calls(&row.progress.parts).next().is_some())
    }

    /// Runs the calls of an answer. It goes on when all have results.
    pub(super) fn begin_calls(&mut self, chat: ChatId, message: MessageId) {
        self.answers.calling.begin(chat, message);
        self.next_call(chat, message);
    }

    fn next_call(&mut self, chat: ChatId, message: MessageId) {
        if let Err(failure) = self.try_next_call(chat, message) {
            self.end_calls(AnswerEnd::failed(chat, message, failure));
        }
    }

    /// Ends an answer whose calls cannot go on.
    fn end_calls(&mut self, end: AnswerEnd) {
        self.answers.calling.end(end.message);
        self.settle(end);
    }

    fn try_next_call(&mut self, chat: ChatId, message: MessageId) -> Result<(), Failure> {
        loop {
            let row = self.stores.message(message)?;
            let Some(call) = rounds::open_calls(&row.progress.parts).next() else {
                self.answers.calling.end(message);
                self.answers.queue(WaitingAnswer {
                    chat,
                    message,
                    start: AnswerStart::Resumed,
                });
                self.emit_called(chat, message);
                return Ok(());
            };
            match self.prepared(chat, &row, call)? {
                Err(result) => self.add_result(&row, call.id, result)?,
                Ok(prepared) => {
                    match self.asks(chat, &row, &prepared.tool.info())? {
                        None => self.run_call(chat, &row, call, prepared)?,
                        Some(Asking(asks_because)) => {
                            let view = CallView {
                                id: call.id.to_owned(),
                                status: CallStatus::Asks,
                                tool: ToolView::from(&*prepared.tool.info()),
                                asks_because,
                            };
                            let fingerprint = prepared.tool.info().fingerprint();
                            self.answers.calling.ask(message, view, fingerprint);
                        }
                    }
                    self.emit_called(chat, message);
                    return Ok(());
                }
            }
        }
    }

    /// Returns a call as it can be run, or else its result.
    fn prepared(
        &self,
        chat: ChatId,
        row: &MessageRow,
        call: CallPart<'_>,
    ) -> Result<Result<PreparedCall, CallResult>, Failure> {
        let parts = &row.progress.parts;
        let before = rounds::calls(parts).take_while(|it| it.id != call.id);
        let done = before.filter_map(|it| {
            let (text, outcome) = rounds::result(parts, it.id)?;
            (outcome == ToolOutcome::Done).then_some((it.made(), text))
        });
        let tools = self.tools_of(chat)?;
        Ok(match tools::answer_to(&tools, call.made(), done) {
            CallAnswer::Run { tool, arguments } => Ok(PreparedCall { tool, arguments }),
            CallAnswer::Repeat { tool, text } => Err(CallResult {
                text,
                outcome: ToolOutcome::Done,
                server: server(&tool.info()),
            }),
            CallAnswer::Refuse(sentence) => Err(CallResult::failed(sentence)),
        })
    }

    /// Returns the tools that are on in a chat.
    fn tools_of(&self, chat: ChatId) -> Result<Vec<Arc<dyn Tool>>, Failure> {
        let guidance = Guidance::of(&self.stores, &self.settings, Some(chat))?;
        let mut tools = self.tools.tools();
        tools.retain(|tool| guidance.tools.contains(&tool.info().definition.name));
        Ok(tools)
    }

    /// Returns whether a tool needs consent now.
    fn asks(
        &self,
        chat: ChatId,
        row: &MessageRow,
        info: &ToolInfo,
    ) -> Result<Option<Asking>, Failure> {
        let effects = info.effects;
        if effects.is_pure() {
            return Ok(None);
        }
        if (effects.changes || effects.network) && self.has_outside_content(row)? {
            return Ok(Some(Asking(Some(OUTSIDE.to_owned()))));
        }
        let fingerprint = info.fingerprint();
        let mut always = self.settings.allowed_tools.iter();
        let in_chat = || self.stores.of(chat).presets().allowed_tools(chat);
        let is_allowed = always.any(|allowed| allowed.fingerprint == fingerprint)
            || in_chat()?.contains(&fingerprint);
        Ok((!is_allowed).then_some(Asking(None)))
    }

    /// Returns whether the branch of a message has results of MCP servers or of another program, or of a search in other
    /// chats, which may have some; or whether it was summed up from such a branch.
    fn has_outside_content(&self, row: &MessageRow) -> Result<bool, Failure> {
        let is_outside = |part: &Part| match part {
            Part::ToolResult { server, .. } => server.is_some(),
            Part::ToolCall { name, .. } => name == SEARCH,
            _ => false,
        };
        let mut leaves = vec![row.id];
        let mut seen = BTreeSet::new();
        while let Some(leaf) = leaves.pop() {
            if !seen.insert(leaf) {
                continue;
            }
            let path = match self.stores.path(leaf) {
                Ok(path) => path,
                // The source of a summary was purged.
                Err(StoreError::NotFound(_)) => return Ok(true),
                Err(error) => return Err(error.into()),
            };
            for row in path {
                if row.role == Role::Tool || row.progress.parts.0.iter().any(is_outside) {
                    return Ok(true);
                }
                leaves.extend(row.prompt_leaf);
            }
        }
        Ok(false)
    }

    /// Runs a call on a thread of its own.
    fn run_call(
        &mut self,
        chat: ChatId,
        row: &MessageRow,
        call: CallPart<'_>,
        prepared: PreparedCall,
    ) -> Result<(), Failure> {
        let PreparedCall { tool, arguments } = prepared;
        let view = CallView {
            id: call.id.to_owned(),
            status: CallStatus::Runs,
            tool: ToolView::from(&*tool.info()),
            asks_because: None,
        };
        let functions = if tool.info().definition.code.is_some() {
            self.functions(chat, row)?
        } else {
            Vec::new()
        };
        let changes = |tool: &Arc<dyn Tool>| tool.info().effects.changes;
        if changes(&tool) || functions.iter().any(changes) {
            self.add_result(row, call.id, CallResult::failed(INTERRUPTED))?;
        }
        let (run, cancel) = self.answers.calling.run(row.id, view);
        let time = Duration::from_secs(self.settings.tool_seconds.into());
        let mailbox = self.mailbox.clone();
        spawn("tool", move || {
            let run_tool = || {
                let run = ToolRun {
                    deadline: Instant::now() + time,
                    cancel: &cancel,
                    functions: &functions,
                    chat: Some(chat.0),
                };
                tool.run(&arguments, &run)
            };
            let result = catch_unwind(AssertUnwindSafe(run_tool));
            let failed = |_| Err(ToolError::Failed("The tool crashed.".to_owned()));
            let result = result.unwrap_or_else(failed);
            // An error means that the actor has ended.
            let _ = mailbox.send(Request::Report(Report::Called { run, result }));
        })
    }

    /// Returns the tools that a program may call: the other ones that would not ask. With results of a server, those that
    /// change things or use the network would.
    fn functions(&self, chat: ChatId, row: &MessageRow) -> Result<Vec<Arc<dyn Tool>>, Failure> {
        let mut functions = Vec::new();
        for tool in self.tools_of(chat)? {
            let info = tool.info();
            if info.definition.code.is_none() && self.asks(chat, row, &info)?.is_none() {
                functions.push(tool);
            }
        }
        if functions.iter().any(|tool| server(&tool.info()).is_some()) {
            functions.retain(|tool| {
                let effects = tool.info().effects;
                !(effects.changes || effects.network)
            });
        }
        Ok(functions)
    }

    /// Returns the server whose content the result of a tool may have: its own, or that of a tool that its program called.
    fn origin(&self, chat: ChatId, tool: &ToolView) -> Option<String> {
        if let ToolSource::Server { name } = &tool.source {
            return Some(name.clone());
        }
        let tools = self.tools_of(chat).unwrap_or_default();
        let infos = tools.iter().map(|tool| tool.info());
        let mut of_programs = infos
            .clone()
            .filter(|info| info.definition.name == tool.name);
        if of_programs.any(|info| info.definition.code.is_some()) {
            return infos.filter_map(|info| server(&info)).next();
        }
        None
    }

    pub(super) fn called(&mut self, run: CallRun, result: Result<ToolOutput, ToolError>) {
        let Some((chat, call)) = self.answers.calling.ended(run) else {
            return;
        };
        let (text, outcome) = match result {
            Ok(output) => (output.text, ToolOutcome::Done),
            Err(error) => (error.to_string(), ToolOutcome::Failed),
        };
        let result = CallResult {
            text,
            outcome,
            server: self.origin(chat, &call.tool),
        };
        self.answer_with(chat, run.message, &call.id, result);
    }

    /// Adds the result of a call, and goes on with the next one.
    fn answer_with(&mut self, chat: ChatId, message: MessageId, id: &str, result: CallResult) {
        let row = self.stores.message(message).map_err(Failure::from);
        match row.map(|row| (self.with_result(&row, id, result), row)) {
            Ok((progress, row)) => {
                let messages = self.stores.messages_with(row.id);
                match messages.journal(row.id, &progress) {
                    Ok(()) => self.next_call(chat, message),
                    // The result is saved with the end, which is retried.
                    Err(error) => self.end_calls(AnswerEnd {
                        progress: Some(progress),
                        ..AnswerEnd::failed(chat, message, error.into())
                    }),
                }
            }
            Err(failure) => self.end_calls(AnswerEnd::failed(chat, message, failure)),
        }
    }

    fn add_result(&self, row: &MessageRow, id: &str, result: CallResult) -> Result<(), Failure> {
        let progress = self.with_result(row, id, result);
        let messages = self.stores.messages_with(row.id);
        Ok(messages.journal(row.id, &progress)?)
    }

    /// Returns an answer with the result of a call, in place of an earlier one. It is text of limited length.
    fn with_result(&self, row: &MessageRow, id: &str, result: CallResult) -> Progress {
        let most = self.settings.tool_result_characters as usize;
        let mut progress = row.progress.clone();
        let is_of_call = |part: &Part| matches!(part, Part::ToolResult { id: of, .. } if of == id);
        progress.parts.0.retain(|part| !is_of_call(part));
        progress.parts.0.push(Part::ToolResult {
            id: id.to_owned(),
            text: tools::given(&result.text, most),
            outcome: result.outcome,
            server: result.server,
        });
        let is_over = rounds::open_calls(&progress.parts).next().is_none();
        if is_over && !matches!(progress.tokens.last(), None | Some(&ROUND_END)) {
            progress.tokens.push(ROUND_END);
        }
        progress
    }

    /// Adds results for the calls of these chats that run and are about to be stopped: they are not run again.
    pub(super) fn stop_running_calls(&mut self, of: impl Fn(ChatId) -> bool) {
        for (message, call) in self.answers.calling.running(of) {
            let added = self.stores.message(message).map_err(Failure::from);
            let added =
                added.and_then(|row| self.add_result(&row, &call.id, CallResult::failed(STOPPED)));
            if let Err(failure) = added {
                tracing::warn!(code = failure.code.name(), "a stopped call was not noted");
            }
        }
    }

    /// Applies the user's decision about a call that waits.
    pub(crate) fn answer_call(
        &mut self,
        message: MessageId,
        id: &str,
        consent: Consent,
    ) -> Result<(), Failure> {
        let gone = || Failure::other("This call does not wait any more.");
        let (chat, shown) = self.answers.calling.asking(message, id).ok_or_else(gone)?;
        if let Consent::Denied { reason } = consent {
            let reason = text::cut(reason.trim(), MAX_REASON);
            let text = match &*reason {
                "" => "The user did not allow this call.".to_owned(),
                reason => format!("The user did not allow this call. They say: {reason}"),
            };
            let result = CallResult {
                outcome: ToolOutcome::Denied,
                ..CallResult::failed(text)
            };
            self.answer_with(chat, message, id, result);
            return Ok(());
        }
        let row = self.stores.message(message)?;
        let call = rounds::calls(&row.progress.parts).find(|call| call.id == id);
        let call = call.ok_or_else(gone)?;
        match self.prepared(chat, &row, call)? {
            // The tool was removed meanwhile.
            Err(result) => self.answer_with(chat, message, id, result),
            Ok(prepared) if prepared.tool.info().fingerprint() != shown => {
                self.next_call(chat, message);
                return Err(Failure::other(
                    "This tool has changed meanwhile. Look at it again.",
                ));
            }
            Ok(prepared) => {
                let info = prepared.tool.info();
                match consent {
                    Consent::InChat => {
                        let presets = self.stores.of(chat).presets();
                        presets.allow_tool(chat, &info.fingerprint())?;
                    }
                    Consent::Always => self.allow_always(&info)?,
                    Consent::Once | Consent::Denied { .. } => {}
                }
                match self.run_call(chat, &row, call, prepared) {
                    Ok(()) => self.emit_called(chat, message),
                    Err(failure) => self.end_calls(AnswerEnd::failed(chat, message, failure)),
                }
            }
        }
        Ok(())
    }

    fn allow_always(&mut self, info: &ToolInfo) -> Result<(), Failure> {
        let mut settings = self.settings.clone();
        let fingerprint = info.fingerprint();
        let mut allowed = settings.allowed_tools.iter();
        if allowed.any(|tool| tool.fingerprint == fingerprint) {
            return Ok(());
        }
        settings.allowed_tools.push(AllowedTool {
            title: info.title.clone(),
            fingerprint,
        });
        let settings = self.save_settings(settings)?;
        self.emit(ChatEvent::SettingsChanged {
            settings: Box::new(settings),
        });
        Ok(())
    }

    /// Tells the window that the tools have changed, and has prompts made again that offer them.
    pub(crate) fn tools_changed(&mut self) {
        self.ahead.forget_last();
        self.context.forget();
        self.emit(ChatEvent::ToolsChanged);
    }

    fn emit_called(&self, chat: ChatId, message: MessageId) {
        let row = self.stores.message(message).map_err(Failure::from);
        match row.and_then(|row| showing::one_message(&self.stores, &self.answers, row)) {
            Ok(message) => self.emit(ChatEvent::Called {
                chat,
                message: Box::new(message),
            }),
            Err(failure) => {
                tracing::error!(code = failure.code.name(), "an answer cannot be shown");
            }
        }
    }
}

/// Returns the MCP server of a tool.
fn server(info: &ToolInfo) -> Option<String> {
    match &info.source {
        ToolSource::BuiltIn => None,
        ToolSource::Server { name } => Some(name.clone()),
    }
}
