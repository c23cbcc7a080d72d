//! Every value of chat's types is its own on the wire. No field has its default, so that one that is left out is seen.

use std::path::PathBuf;

use chat::{ChatId, Failure, FailureCode, MessageId};
use serde::Serialize;
use serde_json::{Value, json};

use super::*;

fn json_of(value: impl Serialize) -> Value {
    serde_json::to_value(value).expect("plain data")
}

fn failure() -> Failure {
    Failure::new(FailureCode::TooLong, "It is too long.")
}

fn message() -> chat::Message {
    chat::Message {
        id: MessageId(7),
        parent: Some(MessageId(6)),
        role: chat::Role::Assistant,
        text: "Yes.".into(),
        thinking: Some("Hm.".into()),
        thinking_ms: Some(1250),
        thinks: true,
        state: chat::MessageState::Failed,
        stats: None,
        error: Some(failure()),
        omitted: Some(chat::Omitted {
            messages: 3,
            thinking: 2,
        }),
        created_at: 1_700_000_001,
        siblings: vec![MessageId(5), MessageId(7)],
        seq: 9,
    }
}

fn shown_message() -> Value {
    json!({
        "id": 7,
        "parent": 6,
        "role": "assistant",
        "text": "Yes.",
        "thinking": "Hm.",
        "thinkingMs": 1250,
        "thinks": true,
        "state": "failed",
        "stats": null,
        "error": { "code": "too-long", "message": "It is too long." },
        "omitted": { "messages": 3, "thinking": 2 },
        "createdAt": 1_700_000_001,
        "siblings": [5, 7],
        "seq": 9,
    })
}

fn summary() -> chat::ChatSummary {
    chat::ChatSummary {
        id: ChatId(4),
        title: "Colours".into(),
        created_at: 1_700_000_002,
        updated_at: 1_700_000_003,
        writing: true,
    }
}

fn shown_summary() -> Value {
    json!({
        "id": 4,
        "title": "Colours",
        "createdAt": 1_700_000_002,
        "updatedAt": 1_700_000_003,
        "writing": true,
    })
}

#[test]
fn every_kind_of_failure_has_its_own_code_and_keeps_its_sentence() {
    let codes = [
        FailureCode::NoModel,
        FailureCode::BadModel,
        FailureCode::MissingModel,
        FailureCode::Crashed,
        FailureCode::NotFound,
        FailureCode::Busy,
        FailureCode::TooLong,
        FailureCode::AnswerFull,
        FailureCode::Generation,
        FailureCode::DiskFull,
        FailureCode::Store,
        FailureCode::Invalid,
    ];
    for (at, code) in codes.into_iter().enumerate() {
        // A kind to come does not compile until it is in the list.
        let place = match code {
            FailureCode::NoModel => 0,
            FailureCode::BadModel => 1,
            FailureCode::MissingModel => 2,
            FailureCode::Crashed => 3,
            FailureCode::NotFound => 4,
            FailureCode::Busy => 5,
            FailureCode::TooLong => 6,
            FailureCode::AnswerFull => 7,
            FailureCode::Generation => 8,
            FailureCode::DiskFull => 9,
            FailureCode::Store => 10,
            FailureCode::Invalid => 11,
        };
        assert_eq!(place, at);
        let error = WireError::from(Failure::new(code, "Why."));
        // The store keeps the reason of a failed answer under the same name.
        let shown = json!({ "code": code.name(), "message": "Why." });
        assert_eq!(json_of(error), shown);
    }
}

/// Each value under its name on the wire.
#[track_caller]
fn names<T, W: From<T> + Serialize>(values: impl IntoIterator<Item = (T, &'static str)>) {
    for (value, name) in values {
        assert_eq!(json_of(W::from(value)), json!(name));
    }
}

#[test]
fn every_role_and_state_of_a_message_has_its_own_name() {
    names::<_, Role>([
        (chat::Role::User, "user"),
        (chat::Role::Assistant, "assistant"),
    ]);
    names::<_, MessageState>([
        (chat::MessageState::Writing, "writing"),
        (chat::MessageState::Done, "done"),
        (chat::MessageState::Stopped, "stopped"),
        (chat::MessageState::Interrupted, "interrupted"),
        (chat::MessageState::Limit, "limit"),
        (chat::MessageState::Failed, "failed"),
    ]);
}

fn status() -> chat::ModelStatus {
    chat::ModelStatus {
        state: chat::ModelState::Loading,
        name: "Mine".into(),
        file: Some(PathBuf::from("/models/mine.gguf")),
        demo_model: true,
        quantisation: "Q5_K_M".into(),
        file_bytes: 1_250_000,
        context_length: 1234,
        context_can_grow: true,
        context_note: Some("longer than trained".into()),
        kv_bytes: 2_500_000,
        fingerprint: "f".into(),
        template: None,
        device: None,
        progress: 0.3,
        error: Some(failure()),
        can_think: true,
        sampling: chat::Sampling::default(),
    }
}

#[test]
fn a_models_status_reaches_the_page_whatever_it_is_doing() {
    for (state, name) in [
        (chat::ModelState::None, "none"),
        (chat::ModelState::Checking, "checking"),
        (chat::ModelState::Loading, "loading"),
        (chat::ModelState::Ready, "ready"),
        (chat::ModelState::Failed, "failed"),
    ] {
        let shown = json_of(ModelStatus::from(chat::ModelStatus { state, ..status() }));
        assert_eq!(shown["state"], name);
    }
    let shown = json_of(ModelStatus::from(status()));
    assert_eq!(shown["progress"], 0.3);
    assert_eq!(shown["error"]["code"], "too-long");
    assert_eq!(shown["template"], Value::Null);

    for (kind, name) in [
        (chat::DeviceKind::Cpu, "cpu"),
        (chat::DeviceKind::Gpu, "gpu"),
        (chat::DeviceKind::Cuda, "cuda"),
        (chat::DeviceKind::Metal, "metal"),
    ] {
        let device = chat::Device {
            kind,
            name: "Card".into(),
            reason: "it is fast".into(),
            report: None,
        };
        assert_eq!(json_of(Device::from(device))["kind"], name);
    }
    for (used, name) in [
        (chat::TemplateUse::BuiltIn, "built-in"),
        (chat::TemplateUse::Known, "known"),
        (chat::TemplateUse::Unknown, "unknown"),
        (chat::TemplateUse::Own, "own"),
    ] {
        let template = Template::from(chat::Template { used, fault: None });
        assert_eq!(json_of(template)["used"], name);
    }
}

#[test]
fn every_choice_of_the_settings_goes_to_the_page_and_back() {
    use chat::{KvType, SendWith, Theme};
    for (theme, theme_name) in [
        (Theme::System, "system"),
        (Theme::Light, "light"),
        (Theme::Dark, "dark"),
    ] {
        for (kv_type, kv_name) in [(KvType::F16, "f16"), (KvType::Q8_0, "q8_0")] {
            for (send_with, key) in [
                (SendWith::Enter, "enter"),
                (SendWith::CtrlEnter, "ctrl-enter"),
            ] {
                let chosen = chat::Settings {
                    theme,
                    kv_type,
                    send_with,
                    ..chat::Settings::default()
                };
                let shown = Settings::from(chosen.clone());
                let names = json_of(&shown);
                assert_eq!(names["theme"], theme_name);
                assert_eq!(names["kvType"], kv_name);
                assert_eq!(names["sendWith"], key);
                assert_eq!(chat::Settings::from(shown), chosen);
            }
        }
    }
}

#[test]
fn every_event_reaches_the_page_field_by_field() {
    let (chat, message_id) = (ChatId(4), MessageId(7));
    let cases = [
        (
            chat::ChatEvent::ChatChanged(summary()),
            json!({ "type": "chatChanged", "chat": shown_summary() }),
        ),
        (
            chat::ChatEvent::ChatRemoved(chat),
            json!({ "type": "chatRemoved", "chat": 4 }),
        ),
        (
            chat::ChatEvent::Delta {
                chat,
                message: message_id,
                seq: 2,
                thinking: "Hm.".into(),
                text: "Yes.".into(),
                tokens: 31,
                tokens_per_second: 12.3,
            },
            json!({
                "type": "delta",
                "chat": 4,
                "message": 7,
                "seq": 2,
                "thinking": "Hm.",
                "text": "Yes.",
                "tokens": 31,
                "tokensPerSecond": 12.3,
            }),
        ),
        (
            chat::ChatEvent::Ended {
                chat,
                message: message(),
            },
            json!({ "type": "ended", "chat": 4, "message": shown_message() }),
        ),
        (
            chat::ChatEvent::CopyFailed(failure()),
            json!({
                "type": "copyFailed",
                "error": { "code": "too-long", "message": "It is too long." },
            }),
        ),
    ];
    for (event, shown) in cases {
        assert_eq!(json_of(HostEvent::from(event)), shown);
    }
    for (stage, name) in [
        (chat::Stage::Waiting, "waiting"),
        (chat::Stage::Reading, "reading"),
        (chat::Stage::Thinking, "thinking"),
        (chat::Stage::Writing, "writing"),
    ] {
        let event = chat::ChatEvent::Stage {
            chat,
            message: message_id,
            stage,
            done: 11,
            total: 30,
        };
        let shown = json!({
            "type": "stage", "chat": 4, "message": 7, "stage": name, "done": 11, "total": 30,
        });
        assert_eq!(json_of(HostEvent::from(event)), shown);
    }
    let model = json_of(HostEvent::from(chat::ChatEvent::Model(status())));
    assert_eq!(model["type"], "model");
    assert_eq!(model["status"], json_of(ModelStatus::from(status())));
}

fn draft(text: &str) -> chat::Draft {
    chat::Draft {
        text: text.into(),
        pastes: vec!["long".into()],
        queue: vec![chat::QueuedMessage {
            text: "next".into(),
            pastes: vec!["longer".into()],
            thinking: true,
        }],
    }
}

fn shown_draft(text: &str) -> Value {
    let queue = json!([{ "text": "next", "pastes": ["longer"], "thinking": true }]);
    json!({ "text": text, "pastes": ["long"], "queue": queue })
}

#[test]
fn a_snapshot_reaches_the_page_field_by_field() {
    let snapshot = chat::Snapshot {
        first_start: true,
        chats: vec![summary()],
        current: Some(ChatId(4)),
        settings: chat::Settings::default(),
        model: status(),
        new_chat_draft: draft("Dear"),
    };
    let shown = Snapshot::new(snapshot, Path::new("/data"), Path::new("/data/log"));
    let shown = json_of(shown);
    for (key, value) in [
        ("dataFolder", json!("/data")),
        ("logFile", json!("/data/log")),
        ("firstStart", json!(true)),
        ("chats", json!([shown_summary()])),
        ("current", json!(4)),
        ("model", json_of(ModelStatus::from(status()))),
        ("drafts", json!({ "newChat": shown_draft("Dear") })),
        ("maxThreads", json!(chat::max_threads())),
    ] {
        assert_eq!(shown[key], value, "{key}");
    }
}

#[test]
fn a_chat_its_hits_and_its_copies_reach_the_page_field_by_field() {
    let view = chat::ChatView {
        chat: summary(),
        after: Some(MessageId(6)),
        messages: vec![message()],
        draft: draft("And"),
    };
    let shown = json!({
        "chat": shown_summary(),
        "after": 6,
        "messages": [shown_message()],
        "draft": shown_draft("And"),
    });
    assert_eq!(json_of(ChatView::from(view)), shown);

    let hit = chat::SearchHit {
        chat: ChatId(4),
        title: "Colours".into(),
        message: Some(MessageId(7)),
        snippet: "\u{e000}Yes\u{e001}.".into(),
        at: 1_700_000_004,
    };
    let shown = json!({
        "chat": 4,
        "title": "Colours",
        "message": 7,
        "snippet": "\u{e000}Yes\u{e001}.",
        "at": 1_700_000_004,
    });
    assert_eq!(json_of(SearchHit::from(hit)), shown);

    let copy = chat::GoodCopy {
        name: "day-2026-03-05.db".into(),
        path: "/data/copies/day-2026-03-05.db".into(),
        day: Some("2026-03-05".into()),
        bytes: 1_250_000,
        chats: 12,
    };
    let shown = json!({
        "name": "day-2026-03-05.db", "day": "2026-03-05", "sizeMb": 1.3, "chats": 12,
    });
    assert_eq!(json_of(DatabaseCopy::from(copy)), shown);
}

#[test]
fn numbers_that_the_page_cannot_hold_saturate_and_figures_stay_short() {
    assert_eq!(narrow(4_294_967_295_i64), u32::MAX);
    assert_eq!(narrow(4_294_967_296_i64), u32::MAX);
    assert_eq!(narrow(-1_i64), u32::MAX);
    assert_eq!(figure(0.6), 0.6);
    assert_eq!(megabytes(0), 0.0);
    assert_eq!(megabytes(149_999), 0.1);
    assert_eq!(megabytes(4_623_168), 4.6, "as the file manager says");
}
