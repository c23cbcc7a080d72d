//! State of the window as JSON: the names and values that the page relies on.

use chat::{
    AnswerStats, ChatEvent, ChatId, ChatSummary, Failure, FailureCode, Folder, FolderId,
    LengthWish, Message, MessageId, MessageState, ModelStatus, ModelView, Omitted, ReadFrom, Role,
    Settings, Stage, UnopenedModel,
};
use inference::{Parts, Stats, ThinkingCut};
use serde_json::{Value, json};

/// Serialises a value as for the channel, where a float has the digits of its own precision.
fn sent(value: impl serde::Serialize) -> Value {
    let text = serde_json::to_string(&value).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn failure() -> Failure {
    Failure::new(FailureCode::TooLong, "It is too long.")
}

fn summary() -> ChatSummary {
    ChatSummary {
        id: ChatId(4),
        title: "Colours".into(),
        // Beyond 2106, where 32 bits end.
        created_at: 4_294_967_296,
        updated_at: 1_700_000_003,
        writing: true,
        continues: Some(ChatId(3)),
        folder: Some(FolderId(2)),
        pinned: true,
        archived: false,
        temporary: false,
        purge_at: None,
    }
}

fn folder() -> Folder {
    Folder {
        id: FolderId(2),
        name: "Art".into(),
        collapsed: true,
    }
}

fn shown_folder() -> Value {
    json!({ "id": 2, "name": "Art", "collapsed": true })
}

#[test]
fn a_message_has_a_value_for_every_field() {
    let stats = AnswerStats {
        figures: Stats {
            prompt_tokens: 101,
            cached_tokens: 40,
            tokens: 23,
            thinking_tokens: 7,
            thinking_cut: Some(ThinkingCut::AnswerNow),
            repeated: false,
            shared: false,
            first_token_ms: 1235.5,
            tokens_per_second: 16.25,
            read_per_second: 84.5,
            drafted_tokens: 6,
            accepted_tokens: 5,
            seed: 77,
        },
        model: "Mine".into(),
        device: "CPU".into(),
    };
    let message = Message {
        id: MessageId(7),
        parent: Some(MessageId(6)),
        role: Role::Assistant,
        parts: Parts::of_answer(Some("Hm.".into()), "Yes."),
        thinking_ms: Some(1250),
        thinks: true,
        length: Some(LengthWish::Shorter),
        guide: Some("theme".into()),
        state: MessageState::Failed,
        stats: Some(stats),
        error: Some(failure()),
        omitted: Some(Omitted {
            messages: 3,
            thinking: 2,
        }),
        read_from: Some(ReadFrom {
            message: Some(MessageId(2)),
            thinking: None,
            again: true,
        }),
        created_at: 1_700_000_001,
        siblings: vec![MessageId(5), MessageId(7)],
        seq: 9,
        calls: Vec::new(),
    };
    let expected = json!({
        "id": 7,
        "parent": 6,
        "role": "assistant",
        "parts": [{ "kind": "thinking", "text": "Hm." }, { "kind": "text", "text": "Yes." }],
        "thinkingMs": 1250,
        "thinks": true,
        "length": "shorter",
        "guide": "theme",
        "state": "failed",
        "stats": {
            "promptTokens": 101, "cachedTokens": 40, "tokens": 23, "thinkingTokens": 7, "thinkingCut": "answer-now", "repeated": false,
            "shared": false,
            "firstTokenMs": 1235.5,
            "tokensPerSecond": 16.25, "readPerSecond": 84.5, "draftedTokens": 6, "acceptedTokens": 5, "seed": 77,
            "model": "Mine", "device": "CPU",
        },
        "error": { "code": "too-long", "message": "It is too long." },
        "omitted": { "messages": 3, "thinking": 2 },
        "readFrom": { "message": 2, "thinking": null, "again": true },
        "createdAt": 1_700_000_001,
        "siblings": [5, 7],
        "seq": 9,
        "calls": [],
    });
    let event = ChatEvent::Ended {
        chat: ChatId(4),
        message: Box::new(message),
    };
    assert_eq!(
        sent(event),
        json!({ "type": "ended", "chat": 4, "message": expected })
    );
}

#[test]
fn every_event_has_a_type_of_its_own() {
    let (chat, message) = (ChatId(4), MessageId(7));
    let shown_summary = json!({
        "id": 4, "title": "Colours", "createdAt": 4_294_967_296_i64, "updatedAt": 1_700_000_003, "writing": true,
        "continues": 3, "folder": 2, "pinned": true, "archived": false, "temporary": false, "purgeAt": null,
    });
    let error = json!({ "code": "too-long", "message": "It is too long." });
    for (event, expected) in [
        (
            ChatEvent::ChatChanged { chat: summary() },
            json!({ "type": "chatChanged", "chat": shown_summary }),
        ),
        (
            ChatEvent::ChatsChanged {
                chats: vec![summary()],
            },
            json!({ "type": "chatsChanged", "chats": [shown_summary] }),
        ),
        (
            ChatEvent::ChatsRemoved { chats: vec![chat] },
            json!({ "type": "chatsRemoved", "chats": [4] }),
        ),
        (
            ChatEvent::FoldersChanged {
                folders: vec![folder()],
            },
            json!({ "type": "foldersChanged", "folders": [shown_folder()] }),
        ),
        (
            ChatEvent::Delta {
                chat,
                message,
                seq: 2,
                parts: Parts::of_answer(Some("Hm.".into()), "Yes."),
                tokens: 31,
                tokens_per_second: 12.3,
            },
            json!({
                "type": "delta", "chat": 4, "message": 7, "seq": 2, "tokens": 31,
                "parts": [{ "kind": "thinking", "text": "Hm." }, { "kind": "text", "text": "Yes." }],
                "tokensPerSecond": 12.3,
            }),
        ),
        (
            ChatEvent::CopyFailed { error: failure() },
            json!({ "type": "copyFailed", "error": error }),
        ),
        (
            ChatEvent::Model {
                model: ModelView {
                    status: ModelStatus::None,
                    error: Some(failure()),
                },
            },
            json!({ "type": "model", "model": { "status": { "state": "none" }, "error": error } }),
        ),
    ] {
        assert_eq!(sent(event), expected);
    }
    let reading = Stage::Reading {
        done: 11,
        total: 30,
        cached: 7,
        seconds_left: Some(9),
    };
    for (stage, expected) in [
        (Stage::Waiting, json!({ "name": "waiting" })),
        (
            reading,
            json!({ "name": "reading", "done": 11, "total": 30, "cached": 7, "secondsLeft": 9 }),
        ),
        (Stage::Thinking, json!({ "name": "thinking" })),
        (Stage::Writing, json!({ "name": "writing" })),
    ] {
        let event = ChatEvent::Stage {
            chat,
            message,
            stage,
        };
        assert_eq!(
            sent(event),
            json!({ "type": "stage", "chat": 4, "message": 7, "stage": expected })
        );
    }
}

#[test]
fn a_model_is_what_is_known_of_it() {
    let model = UnopenedModel {
        name: "mine".into(),
        file: Some("/models/mine.gguf".into()),
        bundled_model: false,
    };
    let shown = json!({ "name": "mine", "file": "/models/mine.gguf", "bundledModel": false });
    let checking = ModelStatus::Checking {
        model: model.clone(),
    };
    assert_eq!(
        sent(checking),
        json!({ "state": "checking", "model": shown })
    );
    let unopened = model.clone();
    let loading = ModelStatus::Loading {
        model,
        progress: 0.3,
    };
    assert_eq!(
        sent(loading),
        json!({ "state": "loading", "model": shown, "progress": 0.3 })
    );
    let ejected = ModelStatus::Ejected { model: unopened };
    assert_eq!(sent(ejected), json!({ "state": "ejected", "model": shown }));
}

#[test]
fn settings_go_to_the_page_and_back_and_nothing_else_is_taken() {
    let shown = sent(Settings::default());
    let back: Settings = serde_json::from_value(shown.clone()).unwrap();
    assert_eq!(back, Settings::default());
    assert_eq!(shown["kvType"], "f16");
    assert_eq!(shown["sendWith"], "enter");
    for (key, value) in [("colour", json!(1)), ("kvType", json!("f32"))] {
        let mut other = shown.clone();
        other[key] = value;
        assert!(serde_json::from_value::<Settings>(other).is_err(), "{key}");
    }
}
