//! Prefill before there is a question, or while it is written.

use super::*;

#[test]
fn a_chat_that_is_opened_and_its_draft_are_read_before_they_are_sent() {
    for model in variations() {
        let chat = tokens(1, 300);
        let mut blocks = Blocks::default();
        let mut session = model.session();
        converse(&mut session, &chat[..140], &chat[140..]);
        store_all(&mut session, &mut blocks);
        for question in [9, 130, 469] {
            let prompt = [&chat[..], &tokens(2, question)].concat();
            let (cold, _) = read(&mut model.session(), &prompt);
            let mut again = model.session();
            assert_eq!(resume(&mut again, &chat, &mut blocks), [128, 256]);
            read_ahead(&mut again, &chat, 300);
            assert_eq!(again.tokens(), chat);
            // Another draft comes before it.
            for draft in [&[&chat[..], &tokens(3, 480)].concat(), &prompt[..]] {
                resume(&mut again, draft, &mut blocks);
                assert_eq!(again.tokens(), chat, "the chat stays");
                read_ahead(&mut again, draft, 300);
                assert_eq!(again.tokens(), draft);
            }
            resume(&mut again, &prompt, &mut blocks);
            let (found, cached) = read(&mut again, &prompt);
            assert_eq!(cached, prompt.len() - 1);
            assert_close(&found, &cold, BOUND);
        }
    }
}

#[test]
fn a_draft_is_stored_once_it_is_sent() {
    let (chat, draft, other) = (tokens(1, 300), tokens(2, 300), tokens(3, 300));
    let prompt = [&chat[..], &draft].concat();
    let mut session = Model::usual().session();
    session.set_spare_memory(Box::new(|_, _| 1 << 30));
    session.resume(&other, 1, &mut NoBlocks, &NEVER, &mut |_| {});
    read(&mut session, &other);
    session.resume(&prompt, 2, &mut NoBlocks, &NEVER, &mut |_| {});
    let more = session.read_ahead(&prompt, 300, &ALWAYS);
    assert!(!more.expect("no failure"), "cancelled");
    assert!(session.tokens().is_empty());
    read_ahead(&mut session, &prompt, 300);
    let mut blocks = Blocks::default();
    store_all(&mut session, &mut blocks);
    assert_eq!(blocks.labels, [(2, 128), (2, 256), (1, 128), (1, 256)]);
    assert_eq!(session.tokens(), prompt);
    read(&mut session, &prompt);
    store_all(&mut session, &mut blocks);
    assert_eq!(blocks.labels[4..], [(2, 384), (2, 512)]);
}

#[test]
fn a_draft_is_not_parked() {
    let (chat, draft, other) = (tokens(1, 300), tokens(2, 300), tokens(3, 300));
    let prompt = [&chat[..], &draft].concat();
    let mut session = Model::usual().session();
    session.set_spare_memory(Box::new(|_, _| 1 << 30));
    read_ahead(&mut session, &prompt, 300);
    read(&mut session, &other);
    let parked: Vec<_> = session.parked.tokens().collect();
    assert_eq!(parked, [&chat[..]]);
}
