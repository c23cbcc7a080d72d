//! Interim.
use engine::{Engine, Part};
use jiff::civil::Date;
use serde_json::{Value, json};
#[derive(Clone, Copy, PartialEq)]
pub enum Role {
    User,
    Assistant,
}
#[derive(Clone)]
pub enum KeepThinking {
    All,
}
#[derive(Clone)]
pub struct Turn {
    pub role: Role,
    pub text: String,
    pub thinking: Option<String>,
    pub ids: Option<Vec<u32>>,
    pub open: bool,
}
pub struct Conversation {
    pub messages: Vec<Turn>,
    pub instructions: Option<String>,
    pub thinking: bool,
    pub today: Date,
    pub tools: Vec<Value>,
    pub keep_thinking: KeepThinking,
}
pub struct Prompt {
    pub ids: Vec<u32>,
    pub starts_in: Part,
}
pub trait PromptExt {
    fn prompt(&self, c: &Conversation) -> Result<Prompt, engine::TemplateError>;
}
impl PromptExt for Engine {
    fn prompt(&self, c: &Conversation) -> Result<Prompt, engine::TemplateError> {
        let messages: Vec<_> = c.messages.iter().map(|m| json!({"role": if m.role == Role::User {"user"} else {"assistant"}, "content": m.text})).collect();
        let mut ctx = json!({"messages": messages, "add_generation_prompt": true, "enable_thinking": c.thinking});
        if let Some(i) = &c.instructions {
            ctx["custom_instructions"] = json!(i);
        }
        let text = self.template().render(&ctx, c.today)?;
        Ok(Prompt {
            ids: self.tokenizer().encode(&text, true),
            starts_in: Part::Answer,
        })
    }
}
