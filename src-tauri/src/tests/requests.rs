//! Values on their way from the page's request to the model's input, and from the model's figures to the page. No value
//! is its default, so that a missing field is detected.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chat::Device;
use engine::{
    Constraint, GenerateParams, KvType, Role, Sampling, SamplingDefaults, Stats, StopReason,
    ThinkingCut, TokenKind, ToolDefinition, Turn,
};

use super::*;

/// Returns settings that all differ from their defaults.
pub fn unusual_settings() -> Value {
    json!({
        "theme": "dark",
        "device": "cpu",
        "threads": 1,
        "contextLength": 1234,
        "kvType": "q8_0",
        "unloadMinutes": 30,
        "samplingChanges": {
            "temperature": 1.25,
            "topP": 0.75,
            "topK": 17,
            "minP": 0.125,
            "repeatPenalty": 1.5,
            "seed": 4_294_967_295_u32,
        },
        "maxTokens": 33,
        "thinkingBudget": 77,
        "lookup": false,
        "readAhead": false,
        "instructions": "Be brief.",
        "thinking": false,
        "defaultPreset": 7,
        "sendWith": "ctrl-enter",
        "zoom": 150,
        "showStats": true,
        "guideAnswers": false,
        "modelTitles": true,
        "downloadFolder": std::env::temp_dir(),
        "tools": ["calculator"],
        "allowedTools": [{ "title": "Search in chats", "fingerprint": "f" }],
        "toolRounds": 3,
        "toolSeconds": 20,
        "toolResultCharacters": 2000,
        "serverSeconds": 30,
    })
}

/// Checks that both have the same keys, and no value in common.
#[track_caller]
pub fn none_is_as_in(unusual: &Value, usual: &Value) {
    let (unusual, usual) = (fields(unusual), fields(usual));
    assert_eq!(
        unusual.keys().collect::<Vec<_>>(),
        usual.keys().collect::<Vec<_>>()
    );
    for (key, value) in unusual {
        match value {
            Value::Object(_) => none_is_as_in(value, &usual[key]),
            _ => assert_ne!(value, &usual[key], "{key}"),
        }
    }
}

fn fields(value: &Value) -> &serde_json::Map<String, Value> {
    value.as_object().expect("an object")
}

/// Input of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    conversation: Conversation,
    params: GenerateParams,
}

/// A model that records its requests and always gives the same answer.
#[derive(Clone, Default)]
pub struct Recorder {
    options: Arc<Mutex<Vec<ModelOptions>>>,
    prompted: Arc<Mutex<Vec<Conversation>>>,
    turns: Arc<Mutex<Vec<Asked>>>,
    /// True if an answer does not end before it is cancelled.
    pub is_endless: Arc<AtomicBool>,
    /// True if it ignores cancellation, too.
    is_deaf: bool,
    open: Option<ModelInfo>,
    requests: Vec<ModelRequest>,
}

impl Recorder {
    /// Makes a model whose answers do not end by themselves, nor, if `is_deaf`, when they are cancelled.
    pub fn endless(is_deaf: bool) -> Self {
        Self {
            is_endless: Arc::new(AtomicBool::new(true)),
            is_deaf,
            ..Self::default()
        }
    }

    fn last_turn(&self) -> Asked {
        let turns = self.turns.lock().expect("not poisoned");
        turns.last().cloned().expect("a turn")
    }

    pub fn turns(&self) -> usize {
        self.turns.lock().expect("not poisoned").len()
    }
}

/// Returns the figures of an answer.
pub fn figures() -> Stats {
    Stats {
        prompt_tokens: 101,
        cached_tokens: 40,
        tokens: 4,
        thinking_tokens: 1,
        thinking_cut: Some(ThinkingCut::Budget),
        repeated: false,
        shared: false,
        first_token_ms: 1235.0,
        tokens_per_second: 16.25,
        read_per_second: 84.5,
        drafted_tokens: 6,
        accepted_tokens: 5,
        seed: 77,
    }
}

impl ModelHost for Recorder {
    fn open(
        &mut self,
        _: &ModelChoice,
        options: &ModelOptions,
        _: &mut dyn FnMut(Opening),
    ) -> Result<ModelInfo, Failure> {
        self.options
            .lock()
            .expect("not poisoned")
            .push(options.clone());
        let info = ModelInfo {
            name: "Mine".into(),
            file: Some("/models/mine.gguf".into()),
            bundled_model: true,
            quantisation: "Q5_K_M".into(),
            file_bytes: 1_250_000,
            context_length: 1234,
            context_note: Some("longer than trained".into()),
            context_can_grow: true,
            kv_bytes: 2_500_000,
            longest_token: 9,
            fingerprint: "f".into(),
            chat_format: "ChatML, chosen by the file's tokens".into(),
            can_think: true,
            sampling: SamplingDefaults {
                with_thinking: Sampling {
                    temperature: 0.25,
                    top_p: 0.5,
                    top_k: 9,
                    min_p: 0.75,
                    repeat_penalty: 2.5,
                    repeat_last_n: 19,
                    seed: None,
                },
                without_thinking: Sampling {
                    temperature: 0.75,
                    top_p: 0.25,
                    top_k: 8,
                    min_p: 0.5,
                    repeat_penalty: 1.5,
                    repeat_last_n: 18,
                    seed: None,
                },
            },
            device: Device {
                on_gpu: true,
                name: "Card".into(),
                reason: "it is fast".into(),
                report: Some("all is well".into()),
            },
            can_call_tools: true,
        };
        Ok(self.open.insert(info).clone())
    }

    fn close(&mut self) {
        self.open = None;
    }

    fn info(&self) -> Option<&ModelInfo> {
        self.open.as_ref()
    }

    fn prompt(&mut self, conversation: &Conversation, _: &AtomicBool) -> Result<Prompt, Failure> {
        let mut prompted = self.prompted.lock().expect("not poisoned");
        prompted.push(conversation.clone());
        Ok(Prompt::of_ids(vec![0; 10]))
    }

    fn submit(&mut self, request: ModelRequest) -> Result<(), Failure> {
        self.requests.push(request);
        Ok(())
    }

    fn step(
        &mut self,
        _: &AtomicBool,
        on_event: &mut dyn FnMut(RequestId, Event<'_>),
    ) -> Vec<(RequestId, Result<Finished, Failure>)> {
        let Some(request) = self.requests.pop() else {
            return Vec::new();
        };
        vec![(request.id, Ok(self.run(&request, on_event)))]
    }
}

impl Recorder {
    fn run(
        &self,
        request: &ModelRequest,
        on_event: &mut dyn FnMut(RequestId, Event<'_>),
    ) -> Finished {
        let prompted = self.prompted.lock().expect("not poisoned");
        let conversation = prompted.last().cloned().expect("a prompt");
        self.turns.lock().expect("not poisoned").push(Asked {
            conversation,
            params: request.params.clone(),
        });
        for (id, piece, kind) in [
            (41, "<think>", TokenKind::Control),
            (42, "Hm.", TokenKind::Thinking),
            (43, "</think>", TokenKind::Control),
            (44, "Yes.", TokenKind::Answer),
        ] {
            on_event(request.id, Event::Token { id, piece, kind });
        }
        let mut reason = StopReason::MaxTokens;
        while reason != StopReason::Cancelled && self.is_endless.load(Ordering::Relaxed) {
            if request.signals.is_cancelled() && !self.is_deaf {
                reason = StopReason::Cancelled;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let stats = figures();
        Finished { reason, stats }
    }
}

/// Returns the last message of a chat, once its answer has ended.
fn answered(window: &Window, chat: &Value) -> Value {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let view = window
            .invoke("open_chat", json!({ "id": chat }))
            .expect("opened");
        let last = view["messages"]
            .as_array()
            .and_then(|all| all.last())
            .cloned();
        match last {
            Some(last) if last["state"] != "writing" => return last,
            _ => assert!(Instant::now() < deadline, "no answer came: {view}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_request_reaches_the_model_and_its_figures_the_page_field_by_field() {
    let model = Recorder::default();
    let window = Window::with(Box::new(model.clone()), NoModel::default());
    window
        .invoke("save_settings", json!({ "settings": unusual_settings() }))
        .expect("saved");
    let send = |chat: &Value, text: &str| {
        let arguments = json!({ "id": chat, "text": text, "thinking": true });
        let view = window.invoke("send", arguments).expect("sent");
        let chat = view["chat"]["id"].clone();
        let answer = answered(&window, &chat);
        (chat, answer)
    };
    let (chat, answer) = send(&Value::Null, "What is green?");
    assert_eq!(
        answer["parts"],
        json!([{ "kind": "thinking", "text": "Hm." }, { "kind": "text", "text": "Yes." }])
    );
    assert_eq!(answer["state"], "limit");
    assert_eq!(
        answer["stats"],
        json!({
            "promptTokens": 101,
            "cachedTokens": 40,
            "tokens": 4,
            "thinkingTokens": 1,
            "thinkingCut": "budget",
            "repeated": false,
            "shared": false,
            "firstTokenMs": 1235.0,
            "tokensPerSecond": 16.25,
            "readPerSecond": 84.5,
            "draftedTokens": 6,
            "acceptedTokens": 5,
            "seed": 77,
            "model": "Mine",
            "device": "Card",
        })
    );
    send(&chat, "And blue?");

    let options = model.options.lock().expect("not poisoned").last().cloned();
    let expected = ModelOptions {
        device: "cpu".into(),
        threads: Some(1),
        context_length: Some(1234),
        kv_type: KvType::Q8_0,
    };
    assert_eq!(options, Some(expected));

    let turn = model.last_turn();
    let tools = &turn.conversation.tools;
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0].name, "calculator");
    assert_eq!(turn, second_turn(turn.conversation.today, tools));

    let status = &window.invoke("snapshot", json!({})).expect("a snapshot")["model"];
    assert_eq!(*status, shown_model());
}

#[test]
fn every_verb_of_a_chat_does_what_the_page_asks() {
    let model = Recorder::default();
    let window = Window::with(Box::new(model.clone()), NoModel::default());
    let invoke = |command: &str, arguments: Value| {
        let answer = window.invoke(command, arguments);
        answer.unwrap_or_else(|error| panic!("{command}: {error}"))
    };
    let asked = json!({ "id": null, "text": "What is green?", "thinking": false });
    let view = invoke("send", asked);
    let (chat, question) = (&view["chat"]["id"], &view["messages"][0]["id"]);
    let first = answered(&window, chat);
    assert!(!model.last_turn().conversation.thinking);

    for thinking in [true, false] {
        let again = json!({ "message": first["id"], "thinking": thinking });
        invoke("regenerate", again);
        assert_ne!(answered(&window, chat)["id"], first["id"]);
        let turn = model.last_turn();
        assert_eq!(
            (turn.conversation.thinking, turn.conversation.messages.len()),
            (thinking, 1)
        );
    }

    let shown = invoke("show_sibling", json!({ "message": first["id"] }));
    assert_eq!(shown["messages"][0]["id"], first["id"]);
    invoke("continue_answer", json!({ "message": first["id"] }));
    assert_eq!(answered(&window, chat)["id"], first["id"]);
    let turn = model.last_turn();
    assert_eq!(
        (
            turn.conversation.messages[1].open,
            turn.conversation.messages.len()
        ),
        (true, 2)
    );

    for thinking in [true, false] {
        let edited = json!({ "message": question, "text": "And blue?", "answer": thinking });
        invoke("edit_message", edited);
        answered(&window, chat);
        let turn = model.last_turn();
        assert_eq!(
            (
                turn.conversation.thinking,
                &*turn.conversation.messages[0].text
            ),
            (thinking, "And blue?")
        );
    }
    let turns = model.turns();
    let last = answered(&window, chat);
    let edited = json!({ "message": last["id"], "text": "No.", "answer": null });
    let view = invoke("edit_message", edited);
    assert_eq!(view["messages"][0]["parts"][0]["text"], "No.");
    assert_eq!(model.turns(), turns, "nothing is asked of the model");

    invoke("save_draft", json!({ "id": chat, "text": "Dear" }));
    invoke("save_draft", json!({ "id": null, "text": "New" }));
    invoke("save_pastes", json!({ "id": chat, "pastes": ["long"] }));
    let queued = json!({ "text": "And then?", "pastes": ["longer"], "thinking": true });
    invoke("save_queue", json!({ "id": chat, "queue": [queued] }));
    let draft = json!({ "text": "Dear", "pastes": ["long"], "queue": [queued] });
    assert_eq!(invoke("open_chat", json!({ "id": chat }))["draft"], draft);
    let new = json!({ "text": "New", "pastes": [], "queue": [] });
    assert_eq!(invoke("snapshot", json!({}))["newChatDraft"], new);
    let rest = json!([{ "text": "And last?", "pastes": [], "thinking": false }]);
    let sent = json!({
        "id": chat, "text": "And then?\n\nlonger", "thinking": true, "rest": rest
    });
    let view = invoke("send_queued", sent);
    assert_eq!(
        view["draft"],
        json!({ "text": "Dear", "pastes": ["long"], "queue": rest })
    );
    answered(&window, chat);
    let found = invoke("search", json!({ "query": "blue" }));
    assert_eq!(&found["chats"][0]["chat"], chat, "{found}");
    let hits = invoke("search_chat", json!({ "query": "blue", "id": chat }));
    assert_eq!(hits[0]["message"], found["chats"][0]["hits"][0]["message"]);

    model.is_endless.store(true, Ordering::Relaxed);
    let endless = json!({ "id": chat, "text": "Go on", "thinking": false });
    invoke("send", endless);
    invoke("stop", json!({ "id": chat }));
    assert_eq!(answered(&window, chat)["state"], "stopped");
}

/// Returns the expected second input of the model.
fn second_turn(today: jiff::civil::Date, tools: &Arc<[ToolDefinition]>) -> Asked {
    Asked {
        conversation: Conversation {
            messages: vec![
                Turn::new(Role::User, "What is green?"),
                Turn {
                    thinking: Some("Hm.".into()),
                    ids: Some(vec![41, 42, 43, 44]),
                    ..Turn::new(Role::Assistant, "Yes.")
                },
                Turn::new(Role::User, "And blue?"),
            ],
            instructions: Some("Be brief.".into()),
            thinking: true,
            today,
            tools: Arc::clone(tools),
        },
        params: GenerateParams {
            sampling: Sampling {
                temperature: 1.25,
                top_p: 0.75,
                top_k: 17,
                min_p: 0.125,
                repeat_penalty: 1.5,
                repeat_last_n: 19,
                seed: Some(4_294_967_295),
            },
            max_tokens: Some(33),
            thinking_budget: Some(77),
            logprobs: None,
            goes_on: false,
            lookup: false,
            stops_repetition: true,
            constraint: Some(Constraint::Calls {
                tools: Arc::clone(tools),
                required: false,
            }),
        },
    }
}

/// Returns the model, as the page gets it.
fn shown_model() -> Value {
    json!({
        "status": {
            "state": "ready",
            "model": {
            "name": "Mine",
            "file": "/models/mine.gguf",
            "bundledModel": true,
            "quantisation": "Q5_K_M",
            "fileBytes": 1_250_000,
            "contextLength": 1234,
            "canCallTools": true,
            "contextCanGrow": true,
            "contextNote": "longer than trained",
            "kvBytes": 2_500_000,
            "fingerprint": "f",
            "chatFormat": "ChatML, chosen by the file's tokens",
            "device": {
                "onGpu": true,
                "name": "Card",
                "reason": "it is fast",
                "report": "all is well",
            },
            "canThink": true,
            "sampling": {
                "withThinking": {
                    "temperature": 0.25,
                    "topP": 0.5,
                    "topK": 9,
                    "minP": 0.75,
                    "repeatPenalty": 2.5,
                    "repeatLastN": 19,
                    "seed": null,
                },
                "withoutThinking": {
                    "temperature": 0.75,
                    "topP": 0.25,
                    "topK": 8,
                    "minP": 0.5,
                    "repeatPenalty": 1.5,
                    "repeatLastN": 18,
                    "seed": null,
                },
            },
            },
        },
        "error": null,
    })
}
