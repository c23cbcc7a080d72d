//! Truncation for unsaved conversations, such as that of the terminal.

use figures::count;
use inference::{Conversation, GenerateParams, Prompt};
use store::{MessageId, OmittedRow};

use crate::failure::Failure;
use crate::fit::{Limits, TurnRequest, fit};

/// Parts that the last prompt of a conversation left out. The next one leaves out the same, as long as the whole is too
/// long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LeftOut(OmittedRow);

impl LeftOut {
    /// Makes the prompt of a conversation, cut as little as possible. `summed_up`: number of leading messages that the
    /// last one asks to summarize; else 0. `make` renders the remaining conversation.
    pub fn fit(
        &mut self,
        conversation: Conversation,
        params: &GenerateParams,
        limits: Limits,
        summed_up: usize,
        make: &mut dyn FnMut(&Conversation) -> Result<Prompt, Failure>,
    ) -> Result<Prompt, Failure> {
        let ids = (1..).take(conversation.messages.len()).map(MessageId);
        let request = TurnRequest {
            ids: ids.collect(),
            conversation,
            params: params.clone(),
            before: self.0,
            whole: false,
            summed_up,
        };
        let (prompt, truncation) = fit(&request, limits, make)?;
        self.0 = truncation.0;
        Ok(prompt)
    }

    /// Describes them for a sentence after "not"; `None` if nothing was left out.
    pub fn words(self) -> Option<String> {
        let OmittedRow {
            messages, thinking, ..
        } = self.0;
        let messages = match messages {
            0 => None,
            1 => Some("the first message".to_owned()),
            more => Some(format!("the first {} messages", count(more as usize))),
        };
        let thinking = (thinking > 0).then(|| "earlier thinking".to_owned());
        let parts: Vec<String> = messages.into_iter().chain(thinking).collect();
        (!parts.is_empty()).then(|| parts.join(" or "))
    }
}

#[cfg(test)]
mod tests {
    use inference::{Role, Turn};

    use super::*;

    /// Makes a prompt with a token per byte.
    fn prompt(conversation: &Conversation) -> Result<Prompt, Failure> {
        let bytes: usize = conversation
            .messages
            .iter()
            .map(|turn| turn.text.len() + turn.thinking.as_ref().map_or(0, String::len))
            .sum();
        Ok(Prompt::of_ids(vec![7; bytes]))
    }

    fn conversation(turns: usize) -> Conversation {
        let pair = |_| {
            let answer = Turn {
                thinking: Some("h".repeat(20)),
                ..Turn::new(Role::Assistant, "a".repeat(20))
            };
            [Turn::new(Role::User, "q".repeat(20)), answer]
        };
        let mut messages: Vec<Turn> = (0..turns).flat_map(pair).collect();
        messages.push(Turn::new(Role::User, "and?"));
        Conversation {
            messages,
            instructions: None,
            thinking: true,
            today: jiff::civil::date(2026, 3, 5),
            tools: Vec::new(),
        }
    }

    #[test]
    fn thinking_goes_first_then_whole_turns_and_what_is_gone_stays_gone() {
        let params = GenerateParams {
            max_tokens: Some(40),
            ..GenerateParams::default()
        };
        let limits = Limits::without_remedy(400, 1);
        let mut left_out = LeftOut::default();
        let mut tokens = |turns| {
            let made = left_out.fit(conversation(turns), &params, limits, 0, &mut prompt);
            (made.expect("it fits").ids.len(), left_out.words())
        };
        assert_eq!(tokens(2), (124, None));
        assert_eq!(tokens(5), (224, Some("earlier thinking".to_owned())));
        let (whole, words) = tokens(9);
        assert!(whole <= 240, "{whole}");
        let words = words.expect("turns are gone");
        assert!(words.starts_with("the first 8 messages"), "{words}");
        // One turn more, which fits without another cut.
        assert_eq!(tokens(10).1, Some(words));
        let mut too_long = conversation(0);
        too_long.messages[0].text = "q".repeat(1_000);
        let failed = LeftOut::default().fit(too_long, &params, limits, 0, &mut prompt);
        assert!(failed.is_err());
    }
}
