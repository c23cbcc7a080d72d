//! An answer for a program, from the events of the model to the lines for `goldcrest-serve`.

use std::collections::VecDeque;
use std::sync::Arc;

use api::{
    AnswerForm, ApiEnd, ApiRefusal, ApiText, ApiUsage, Generation, GenerationPrompt, RefusedPart,
    TextPart, ToServer, TokenLogprob,
};
use chat::{ApiEvent, Failure, FailureCode, PromptCounter};
use engine::{Event, Finished, Signals, StopReason, TokenKind};

use super::stop_texts::StopTexts;

/// In place of the logarithm of 0, which JSON does not have.
const LEAST: f32 = -9999.0;

/// An answer as it grows.
pub struct ApiAnswer {
    signals: Signals,
    stop: StopTexts,
    /// True if one call ends the answer.
    single: bool,
    /// True for a conversation, in which blank lines before an answer are not part of it.
    trims: bool,
    /// Part of the request that a refusal is most likely about; `None` if it may be any.
    refusable: Option<RefusedPart>,
    /// Tokens of the model, for the bytes of tokens.
    counter: Option<Arc<dyn PromptCounter>>,
    /// Part that is being written.
    part: Option<TextPart>,
    calls: usize,
    /// Log-probabilities of tokens whose text has not come.
    logprobs: VecDeque<TokenLogprob>,
    /// Log-probabilities of text that is held, with the end of each in the text of the answer.
    held: VecDeque<(usize, TokenLogprob)>,
    /// Bytes of the answer that came, and that were sent.
    written: usize,
    sent: usize,
    /// True once a stop text came, or the only call.
    is_over: bool,
}

impl ApiAnswer {
    pub fn new(request: &Generation, signals: Signals) -> ApiAnswer {
        ApiAnswer {
            signals,
            stop: StopTexts::new(request.stop.clone()),
            single: matches!(
                request.form,
                AnswerForm::Calls { single: true, .. }
                    | AnswerForm::CallsOrJson { single: true, .. }
            ),
            trims: matches!(request.prompt, GenerationPrompt::Conversation { .. }),
            refusable: refusable(request),
            counter: None,
            part: None,
            calls: 0,
            logprobs: VecDeque::new(),
            held: VecDeque::new(),
            written: 0,
            sent: 0,
            is_over: false,
        }
    }

    /// Passes the lines of an event on.
    pub fn event(&mut self, id: u64, event: ApiEvent<'_>, send: &mut dyn FnMut(ToServer)) {
        match event {
            ApiEvent::Begun(info, counter) => {
                self.counter = counter;
                let model = info.name.clone();
                send(ToServer::Begun { id, model });
            }
            ApiEvent::Generated(event) => self.generated(id, event, send),
            ApiEvent::Ended(Ok(finished)) => self.ended(id, finished, send),
            ApiEvent::Ended(Err(failure)) => send(refused(id, failure, self.refusable)),
        }
    }

    fn generated(&mut self, id: u64, event: Event<'_>, send: &mut dyn FnMut(ToServer)) {
        if self.is_over {
            return;
        }
        match event {
            Event::Prefill { .. } => {}
            Event::Logprobs {
                id: token,
                logprob,
                top,
            } => {
                let bytes = |token| {
                    let counter = self.counter.as_ref();
                    counter.map_or_else(Vec::new, |counter| counter.bytes(token))
                };
                self.logprobs.push_back(TokenLogprob {
                    bytes: bytes(token),
                    logprob: logprob.max(LEAST),
                    top: top
                        .iter()
                        .map(|(token, it)| (bytes(*token), it.max(LEAST)))
                        .collect(),
                });
            }
            Event::Call { name, arguments } => {
                self.calls += 1;
                send(ToServer::Call {
                    id,
                    name: name.to_owned(),
                    arguments: arguments.to_owned(),
                });
                if self.single {
                    self.finish();
                }
            }
            Event::Token { piece, kind, .. } => {
                let logprob = self.logprobs.pop_front();
                match kind {
                    TokenKind::Thinking => {
                        let text = self.trimmed(TextPart::Thinking, piece);
                        send_text(id, TextPart::Thinking, text.to_owned(), Vec::new(), send);
                    }
                    TokenKind::Answer => {
                        let trimmed = self.trimmed(TextPart::Answer, piece);
                        if trimmed.is_empty() && !piece.is_empty() {
                            // Blank lines before the answer, which are not part of it.
                            return;
                        }
                        self.written += trimmed.len();
                        let end = self.written;
                        self.held.extend(logprob.map(|it| (end, it)));
                        let (text, ends) = self.stop.push(trimmed);
                        self.send_answer(id, text, send);
                        if ends {
                            self.finish();
                        }
                    }
                    TokenKind::Call | TokenKind::Control => {}
                }
            }
        }
    }

    /// Ends the answer before the model does.
    fn finish(&mut self) {
        self.is_over = true;
        self.signals.cancel();
    }

    /// Returns a piece of text, without the blank lines with which a part begins.
    fn trimmed<'a>(&mut self, part: TextPart, piece: &'a str) -> &'a str {
        if !self.trims || self.part == Some(part) {
            return piece;
        }
        let trimmed = piece.trim_start_matches('\n');
        if !trimmed.is_empty() {
            self.part = Some(part);
        }
        trimmed
    }

    fn send_answer(&mut self, id: u64, text: String, send: &mut dyn FnMut(ToServer)) {
        self.sent += text.len();
        let mut logprobs = Vec::new();
        if !text.is_empty() {
            while let Some((_, logprob)) = self.held.pop_front_if(|(end, _)| *end <= self.sent) {
                logprobs.push(logprob);
            }
        }
        send_text(id, TextPart::Answer, text, logprobs, send);
    }

    fn ended(&mut self, id: u64, finished: Finished, send: &mut dyn FnMut(ToServer)) {
        if !self.is_over {
            let rest = self.stop.end();
            self.send_answer(id, rest, send);
        }
        let reason = match finished.reason {
            _ if self.calls > 0 => ApiEnd::Calls,
            _ if self.is_over => ApiEnd::Stop,
            StopReason::EndOfTurn | StopReason::Cancelled => ApiEnd::Stop,
            StopReason::MaxTokens | StopReason::ContextFull | StopReason::Repetition => {
                ApiEnd::Length
            }
        };
        let stats = finished.stats;
        let usage = ApiUsage {
            prompt: stats.prompt_tokens,
            cached: stats.cached_tokens,
            answer: stats.tokens,
            thinking: stats.thinking_tokens,
        };
        send(ToServer::Ended { id, reason, usage });
    }
}

fn send_text(
    id: u64,
    part: TextPart,
    text: String,
    logprobs: Vec<TokenLogprob>,
    send: &mut dyn FnMut(ToServer),
) {
    if !text.is_empty() {
        let text = ApiText {
            part,
            text,
            logprobs,
        };
        send(ToServer::Text { id, text });
    }
}

/// Returns the part of a request that a refusal is most likely about; `None` if there are several. Failures do not name
/// the part.
fn refusable(request: &Generation) -> Option<RefusedPart> {
    let has_tools = match &request.prompt {
        GenerationPrompt::Conversation { tools, .. } => !tools.is_empty(),
        GenerationPrompt::Text { .. } => false,
    };
    let has_format = matches!(
        request.form,
        AnswerForm::Json { .. } | AnswerForm::CallsOrJson { .. }
    );
    match (has_tools, has_format) {
        (false, false) => Some(RefusedPart::Prompt),
        (false, true) => Some(RefusedPart::Form),
        (true, false) => Some(RefusedPart::Tools),
        (true, true) => None,
    }
}

fn refused(id: u64, failure: Failure, part: Option<RefusedPart>) -> ToServer {
    let why = match failure.code {
        FailureCode::TooLong => ApiRefusal::TooLong,
        FailureCode::NoModel => ApiRefusal::NoModel,
        FailureCode::BadForm => ApiRefusal::Unsupported(part),
        _ => ApiRefusal::Failed,
    };
    ToServer::Refused {
        id,
        why,
        message: failure.message,
    }
}

#[cfg(test)]
mod tests {
    use api::{ApiSampling, ApiTool};
    use engine::Stats;
    use serde_json::json;

    use super::*;

    fn request(stop: &[&str]) -> Generation {
        Generation {
            prompt: GenerationPrompt::Conversation {
                messages: Vec::new(),
                tools: Vec::new(),
                thinking: None,
            },
            form: AnswerForm::Free,
            sampling: ApiSampling::default(),
            max_tokens: None,
            thinking_budget: None,
            stop: stop.iter().map(|it| (*it).to_owned()).collect(),
            logprobs: Some(0),
        }
    }

    /// Runs the tokens of an answer through. Returns its pieces, each with the number of its tokens, and its end.
    fn lines(stop: &[&str], tokens: &[(&str, TokenKind)]) -> (Vec<(String, usize)>, ApiEnd) {
        let mut answer = ApiAnswer::new(&request(stop), Signals::default());
        let (mut pieces, mut end) = (Vec::new(), None);
        let mut take = |line| match line {
            ToServer::Text { text, .. } => pieces.push((text.text, text.logprobs.len())),
            ToServer::Ended { reason, .. } => end = Some(reason),
            other => panic!("{other:?}"),
        };
        for (piece, kind) in tokens {
            let (id, logprob, top) = (1, f32::NEG_INFINITY, &[][..]);
            let event = Event::Logprobs { id, logprob, top };
            answer.event(7, ApiEvent::Generated(event), &mut take);
            let (piece, kind) = (*piece, *kind);
            let event = Event::Token { id, piece, kind };
            answer.event(7, ApiEvent::Generated(event), &mut take);
        }
        let finished = Finished {
            reason: StopReason::EndOfTurn,
            stats: Stats::default(),
        };
        answer.event(7, ApiEvent::Ended(Ok(finished)), &mut take);
        (pieces, end.expect("an end"))
    }

    #[test]
    fn a_refusal_names_the_only_part_that_it_can_be_about() {
        let tool = ApiTool {
            name: "add".to_owned(),
            description: String::new(),
            parameters: json!({ "type": "object" }),
        };
        let of = |code: FailureCode, has_tools: bool, has_format: bool| {
            let mut request = request(&[]);
            request.prompt = GenerationPrompt::Conversation {
                messages: Vec::new(),
                tools: vec![tool.clone(); usize::from(has_tools)],
                thinking: None,
            };
            if has_format {
                let schema = json!({ "type": "object" });
                request.form = AnswerForm::Json { schema };
            }
            let mut answer = ApiAnswer::new(&request, Signals::default());
            let mut reason = None;
            let failure = Failure::new(code, "No.");
            answer.event(7, ApiEvent::Ended(Err(failure)), &mut |line| match line {
                ToServer::Refused { why, .. } => reason = Some(why),
                other => panic!("{other:?}"),
            });
            reason.expect("a refusal")
        };
        for (has_tools, has_format, part) in [
            (false, false, Some(RefusedPart::Prompt)),
            (false, true, Some(RefusedPart::Form)),
            (true, false, Some(RefusedPart::Tools)),
            (true, true, None),
        ] {
            let why = of(FailureCode::BadForm, has_tools, has_format);
            assert_eq!(why, ApiRefusal::Unsupported(part));
        }
        assert_eq!(of(FailureCode::TooLong, true, true), ApiRefusal::TooLong);
    }

    fn piece(text: &str, tokens: usize) -> (String, usize) {
        (text.to_owned(), tokens)
    }

    #[test]
    fn blank_lines_between_thinking_and_answer_are_left_out_with_their_tokens() {
        use TokenKind::{Answer, Control, Thinking};
        let (pieces, end) = lines(
            &[],
            &[
                ("<think>", Control),
                ("\nHm.", Thinking),
                ("</think>", Control),
                ("\n\n", Answer),
                ("Yes.", Answer),
                ("\n\n", Answer),
                ("No.", Answer),
            ],
        );
        let expected = [
            piece("Hm.", 0),
            piece("Yes.", 1),
            piece("\n\n", 1),
            piece("No.", 1),
        ];
        assert_eq!((pieces, end), (expected.to_vec(), ApiEnd::Stop));
    }

    #[test]
    fn text_that_may_stop_the_answer_is_held_with_its_tokens() {
        use TokenKind::Answer;
        let tokens = [
            ("A", Answer),
            ("\n\nB", Answer),
            ("C", Answer),
            (":", Answer),
        ];
        let (pieces, _) = lines(&["A:", "C:"], &tokens);
        assert_eq!(pieces, [piece("A\n\nB", 2)]);
        let (pieces, _) = lines(&["A:"], &tokens);
        assert_eq!(pieces, [piece("A\n\nB", 2), piece("C", 1), piece(":", 1)]);
    }
}
