//! Chats whose model calls tools, and tools that do what a test wants.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chat::{CallStatus, CallView, ChatEvent, ChatId, Message, Part, Settings, ToolOutcome};
use inference::ToolDefinition;
use serde_json::{Map, Value, json};
use tools::{
    Effects, Registry, Tool, ToolError, ToolInfo, ToolOutput, ToolProvider, ToolRun, ToolSource,
};

use crate::scripted::Bench;

/// A tool that returns its arguments, or waits until the test lets it go on.
pub struct Echo {
    pub info: Arc<ToolInfo>,
    pub runs: Arc<Mutex<Vec<Value>>>,
    pub go: Option<Mutex<Receiver<()>>>,
}

impl Tool for Echo {
    fn info(&self) -> Arc<ToolInfo> {
        Arc::clone(&self.info)
    }

    fn run(
        &self,
        arguments: &Map<String, Value>,
        run: &ToolRun<'_>,
    ) -> Result<ToolOutput, ToolError> {
        self.runs.lock().unwrap().push(arguments.clone().into());
        if let Some(go) = &self.go {
            let go = go.lock().unwrap();
            while go.recv_timeout(Duration::from_millis(1)).is_err() {
                if run.cancel.load(Ordering::Relaxed) {
                    return Err(ToolError::Cancelled);
                }
            }
        }
        match arguments.get("text").and_then(Value::as_str) {
            Some("panic") => panic!("the tool broke"),
            Some("seconds") => {
                let left = run.deadline.saturating_duration_since(Instant::now());
                let text = left.as_secs().to_string();
                Ok(ToolOutput { text })
            }
            Some("fail") => Err(ToolError::Failed("It failed.".to_owned())),
            Some("functions") => {
                let names = run
                    .functions
                    .iter()
                    .map(|tool| tool.info().definition.name.clone());
                let text = names.collect::<Vec<_>>().join(" ");
                Ok(ToolOutput { text })
            }
            text => Ok(ToolOutput {
                text: text.unwrap_or_default().to_owned(),
            }),
        }
    }
}

pub struct Tools {
    pub registry: Arc<Registry>,
    pub runs: Arc<Mutex<Vec<Value>>>,
}

impl Tools {
    pub fn new() -> Tools {
        Tools {
            registry: Arc::default(),
            runs: Arc::default(),
        }
    }

    pub fn add(&self, name: &str, effects: Effects, server: Option<&str>) {
        self.registry
            .add(Arc::new(self.echo(name, effects, server, None)));
    }

    /// Adds a tool that waits for the sender.
    pub fn add_slow(&self, name: &str, effects: Effects) -> Sender<()> {
        let (go, wait) = channel();
        let tool = self.echo(name, effects, None, Some(Mutex::new(wait)));
        self.registry.add(Arc::new(tool));
        go
    }

    /// Attaches tools that a test can exchange.
    pub fn attach(&self) -> Arc<Exchanged> {
        let exchanged = Arc::new(Exchanged::default());
        self.registry.attach(exchanged.clone());
        exchanged
    }

    pub fn echo(
        &self,
        name: &str,
        effects: Effects,
        server: Option<&str>,
        go: Option<Mutex<Receiver<()>>>,
    ) -> Echo {
        let source = server.map_or(ToolSource::BuiltIn, |name| ToolSource::Server {
            name: name.to_owned(),
        });
        let info = ToolInfo {
            definition: ToolDefinition {
                name: name.to_owned(),
                description: "Returns its text.".to_owned(),
                parameters: json!({"type": "object", "properties": {"text": {"type": "string"}}}),
                code: (name == "code").then(|| "text".to_owned()),
            },
            title: name.to_uppercase(),
            source,
            effects,
        };
        Echo {
            info: Arc::new(info),
            runs: Arc::clone(&self.runs),
            go,
        }
    }

    pub fn runs(&self) -> usize {
        self.runs.lock().unwrap().len()
    }
}

/// Tools that come and go.
#[derive(Default)]
pub struct Exchanged(Mutex<Vec<Arc<dyn Tool>>>);

impl Exchanged {
    pub fn set(&self, tools: Vec<Echo>) {
        let tools = tools
            .into_iter()
            .map(|tool| Arc::new(tool) as Arc<dyn Tool>);
        *self.0.lock().unwrap() = tools.collect();
    }
}

impl ToolProvider for Exchanged {
    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.0.lock().unwrap().clone()
    }
}

pub const CHANGES: Effects = Effects {
    reads_chats: false,
    reads_files: false,
    changes: true,
    network: false,
};

/// Makes a bench whose new chats have these tools on.
pub fn bench(tools: &Tools, on: &[&str]) -> Bench {
    let bench = Bench::new();
    bench.chat.set_tools(Arc::clone(&tools.registry)).unwrap();
    turn_on(&bench, on);
    bench
}

pub fn turn_on(bench: &Bench, on: &[&str]) {
    let settings = bench.chat.snapshot().unwrap().settings;
    let tools = on.iter().map(|&name| name.to_owned()).collect();
    bench
        .chat
        .save_settings(Settings { tools, ..settings })
        .unwrap();
}

pub fn pure(on: &[&str]) -> (Tools, Bench) {
    let tools = Tools::new();
    on.iter()
        .for_each(|name| tools.add(name, Effects::default(), None));
    let bench = bench(&tools, on);
    (tools, bench)
}

/// Returns the next call that asks, with its answer.
pub fn until_asked(bench: &mut Bench) -> (ChatId, Message, CallView) {
    let asks = |event: &ChatEvent| match event {
        ChatEvent::Called { message, .. } => message
            .calls
            .iter()
            .any(|call| call.status == CallStatus::Asks),
        _ => false,
    };
    match bench.until(asks).pop() {
        Some(ChatEvent::Called { chat, message }) => {
            let call = message.calls[0].clone();
            (chat, *message, call)
        }
        other => panic!("{other:?}"),
    }
}

pub fn results(message: &Message) -> Vec<(String, ToolOutcome)> {
    let results = message.parts.0.iter().filter_map(|part| match part {
        Part::ToolResult { text, outcome, .. } => Some((text.clone(), *outcome)),
        _ => None,
    });
    results.collect()
}

pub fn kinds(message: &Message) -> Vec<&'static str> {
    let kinds = message.parts.0.iter().map(|part| match part {
        Part::Text { .. } => "text",
        Part::Thinking { .. } => "thinking",
        Part::ToolCall { .. } => "call",
        Part::ToolResult { .. } => "result",
    });
    kinds.collect()
}
