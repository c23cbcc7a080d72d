//! Prefill before there is a question, or while it is written.

use super::*;

#[test]
fn a_chat_that_is_opened_and_its_draft_are_read_before_they_are_sent() {
    for model in variations() {
        let chat = tokens(1, 300);
        let mut blocks = Blocks::default();
        let mut warm = model.chats();
        warm.converse(&chat[..140], &chat[140..]);
        warm.store_all(&mut blocks);
        for question in [9, 130, 469] {
            let prompt = [&chat[..], &tokens(2, question)].concat();
            let (cold, _) = model.chats().read(&prompt);
            let mut again = model.chats();
            assert_eq!(again.restore(&chat, &mut blocks), [128, 256]);
            again.read_ahead(&chat, 300);
            assert_eq!(again.tokens(), chat);
            // Another draft comes before it.
            for draft in [&[&chat[..], &tokens(3, 480)].concat(), &prompt[..]] {
                again.restore(draft, &mut blocks);
                assert_eq!(again.tokens(), chat, "the chat stays");
                again.read_ahead(draft, 300);
                assert_eq!(again.tokens(), draft);
            }
            again.restore(&prompt, &mut blocks);
            let (found, cached) = again.read(&prompt);
            assert_eq!(cached, prompt.len() - 1);
            assert_close(&found, &cold, BOUND);
        }
    }
}

#[test]
fn a_draft_is_stored_once_it_is_sent() {
    let (chat, draft, other) = (tokens(1, 300), tokens(2, 300), tokens(3, 300));
    let prompt = [&chat[..], &draft].concat();
    let mut chats = Model::usual().chats().with_budget(1 << 30);
    chats.read_as(1, &other);
    chats.label = 2;
    assert!(!chats.read_block_ahead(&prompt, 300, &ALWAYS), "cancelled");
    assert!(chats.tokens().is_empty());
    chats.read_ahead(&prompt, 300);
    let mut blocks = Blocks::default();
    chats.store_all(&mut blocks);
    assert_eq!(blocks.labels, [(2, 128), (2, 256), (1, 128), (1, 256)]);
    assert_eq!(chats.tokens(), prompt);
    chats.read(&prompt);
    chats.store_all(&mut blocks);
    assert_eq!(blocks.labels[4..], [(2, 384), (2, 512)]);
}

#[test]
fn the_draft_of_another_chat_is_dropped() {
    let (chat, draft, other) = (tokens(1, 300), tokens(2, 300), tokens(3, 300));
    let prompt = [&chat[..], &draft].concat();
    let mut chats = Model::usual().chats().with_budget(1 << 30);
    chats.read_ahead(&prompt, 300);
    chats.read(&other);
    assert_eq!(chats.sequences(), [&other[..], &chat[..]]);
}
