//! Prefill before there is a question, or while it is written.

use super::*;

#[test]
fn what_is_behind_the_last_block_is_read_before_there_is_a_question_as_a_cold_run_reads_it() {
    for model in [
        Model::usual(),
        Model {
            kv: KvType::Q8_0,
            ..Model::usual()
        },
        Model {
            chunk: 32,
            ..Model::usual()
        },
        Model {
            chunk: 2 * BLOCK,
            ..Model::usual()
        },
    ] {
        let chat = tokens(1, 300);
        let mut kept = Kept::default();
        let mut session = model.session();
        converse(&mut session, &chat[..140], &chat[140..]);
        keep_all(&mut session, &mut kept);
        // A short question, one with whole blocks, and one so long that whole blocks are worth more.
        for (question, cached) in [(9, 300), (130, 300), (467, 300), (469, 256)] {
            let prompt = [&chat[..], &tokens(2, question)].concat();
            let (cold, _) = read_after(&mut model.session(), &prompt, 300);
            let mut again = model.session();
            resume_after(&mut again, &chat, 300, 7, &mut kept);
            read_ahead(&mut again, &chat, 300);
            assert_eq!(again.tokens(), chat);
            resume_after(&mut again, &prompt, 300, 7, &mut kept);
            let (found, there) = read_after(&mut again, &prompt, 300);
            assert_eq!(there, cached, "{question}");
            assert!(found == cold, "{question}: other bits");
            // The same if the question was read ahead while it was written, in place of another one.
            let mut ahead = model.session();
            resume_after(&mut ahead, &chat, 300, 7, &mut kept);
            let other = [&chat[..], &tokens(3, 480)].concat();
            for draft in [&other, &prompt] {
                resume_after(&mut ahead, draft, 300, 7, &mut kept);
                read_ahead(&mut ahead, draft, 300);
            }
            resume_after(&mut ahead, &prompt, 300, 7, &mut kept);
            assert!(
                read_after(&mut ahead, &prompt, 300).0 == cold,
                "{question}: other bits of what was read ahead"
            );
        }
    }
}

#[test]
fn what_was_read_ahead_of_a_question_is_not_taken_for_another_ones() {
    let chat = tokens(1, 300);
    let model = Model::usual();
    let mut kept = Kept::default();
    let mut session = model.session();
    // The whole first prompt is stored; its question lies within the third block.
    let first = [&chat[..], &tokens(2, 100)].concat();
    read(&mut session, &first);
    keep_all(&mut session, &mut kept);
    assert_eq!(kept.blocks.len(), 3);
    // When asked again, its passes end at the conversation's end: the third block is not among them.
    let (cold, _) = read_after(&mut model.session(), &first, 300);
    let mut again = model.session();
    resume_after(&mut again, &first, 300, 7, &mut kept);
    let (found, cached) = read_after(&mut again, &first, 300);
    assert_eq!(cached, 256);
    assert!(found == cold, "other bits");
}

#[test]
fn a_draft_is_read_ahead_as_a_cold_run_reads_it() {
    let chat = tokens(1, 300);
    let draft = tokens(2, 500);
    let with = |draft: &[u32]| [&chat[..], draft].concat();
    let mut session = Model::usual().session();
    session.set_spare_memory(Box::new(|_, _| 1 << 30));
    converse(&mut session, &chat[..100], &chat[100..]);
    read_ahead(&mut session, &with(&draft[..200]), 300);
    assert_eq!(session.tokens().len(), 428);
    // A draft is not stored: it may change.
    let mut kept = Kept::default();
    keep_all(&mut session, &mut kept);
    assert_eq!(kept.blocks.len(), 2);
    // It grows, and is sent.
    let more = session.read_ahead(&with(&draft[..400]), 300, &ALWAYS);
    assert!(!more.expect("no failure"), "cancelled");
    let sent = with(&draft[..260]);
    let (found, cached) = read_after(&mut session, &sent, 300);
    assert_eq!(cached, 428);
    assert!(
        found == read_after(&mut Model::usual().session(), &sent, 300).0,
        "other bits"
    );
    // Another draft is sent instead: the positions of the chat stay.
    let mut session = Model::usual().session();
    read(&mut session, &chat);
    read_ahead(&mut session, &with(&draft), 300);
    let sent = with(&tokens(3, 90));
    assert_eq!(read(&mut session, &sent).1, 300);
}

#[test]
fn what_is_read_ahead_of_the_chat_is_kept_and_a_draft_stays_current() {
    let (chat, draft, other) = (tokens(1, 300), tokens(2, 300), tokens(3, 300));
    let prompt = [&chat[..], &draft].concat();
    let mut session = Model::usual().session();
    session.set_spare_memory(Box::new(|_, _| 1 << 30));
    session.resume(&other, 0, 1, None, &NEVER, &mut |_| {});
    read(&mut session, &other);
    session.resume(&prompt, 0, 2, None, &NEVER, &mut |_| {});
    read_ahead(&mut session, &prompt, 300);
    let mut kept = Kept::default();
    keep_all(&mut session, &mut kept);
    assert_eq!(kept.labels, [(2, 128), (2, 256)]);
    assert_eq!(session.tokens(), &prompt[..556]);
    // Once the draft is sent, the others are stored as well.
    read(&mut session, &prompt);
    keep_all(&mut session, &mut kept);
    assert_eq!(kept.labels[2..], [(2, 384), (2, 512), (1, 128), (1, 256)]);
}
