//! The drafts that are prefilled before they are sent.

use store::ChatId;

/// The draft of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DraftAhead {
    pub chat: Option<ChatId>,
    pub text: String,
    pub thinking: bool,
}

impl DraftAhead {
    /// Returns whether it continues `before`.
    fn continues(&self, before: &DraftAhead) -> bool {
        self.chat == before.chat
            && self.thinking == before.thinking
            && self.text.starts_with(&before.text)
    }
}

#[derive(Default)]
pub(crate) struct ReadAhead {
    /// The draft prefilled last.
    last: Option<DraftAhead>,
    /// The draft to prefill when the model is idle.
    next: Option<DraftAhead>,
}

impl ReadAhead {
    /// Sets the draft to prefill next, in place of another.
    pub fn set_next(&mut self, draft: Option<DraftAhead>) {
        self.next = draft;
    }

    /// Returns the draft to prefill, which is no longer pending.
    pub fn take_next(&mut self) -> Option<DraftAhead> {
        self.next.take()
    }

    /// Notes the draft that is prefilled now. Returns whether it continues the last one, whose prefill is not in vain.
    pub fn begin(&mut self, draft: DraftAhead) -> bool {
        let last = self.last.as_ref();
        let continues = last.is_some_and(|last| draft.continues(last));
        self.last = Some(draft);
        continues
    }

    /// Invalidates what was prefilled, as prompts begin otherwise now.
    pub fn forget_last(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(chat: i64, text: &str) -> DraftAhead {
        DraftAhead {
            chat: Some(ChatId(chat)),
            text: text.to_owned(),
            thinking: false,
        }
    }

    #[test]
    fn a_draft_continues_the_last_one_of_its_chat_until_prompts_begin_otherwise() {
        let mut ahead = ReadAhead::default();
        assert!(!ahead.begin(draft(1, "Where")));
        assert!(ahead.begin(draft(1, "Where do")));
        assert!(!ahead.begin(draft(1, "When do")));
        assert!(!ahead.begin(draft(2, "When do they")));
        let thinking = DraftAhead {
            thinking: true,
            ..draft(2, "When do they nest?")
        };
        assert!(!ahead.begin(thinking.clone()));
        ahead.forget_last();
        assert!(!ahead.begin(thinking));
    }

    #[test]
    fn a_later_draft_replaces_the_pending_one() {
        let mut ahead = ReadAhead::default();
        ahead.set_next(Some(draft(1, "Where")));
        ahead.set_next(Some(draft(1, "Where do")));
        assert_eq!(ahead.take_next(), Some(draft(1, "Where do")));
        assert_eq!(ahead.take_next(), None);
    }
}
