//! The chat template of the open model: which one is used, and what it gives.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use chat::{Failure, FailureCode, ModelChoice};
use engine::{Conversation, Engine, Prompt, PromptError, TemplateSandbox, TemplateUse};

use super::{EngineModel, OpenedModel};

impl EngineModel {
    /// Where the chat template of the file with this fingerprint runs, if the user wants the file's own.
    pub(super) fn sandbox_for(
        &self,
        options: &chat::ModelOptions,
        fingerprint: &str,
    ) -> Option<Arc<dyn TemplateSandbox>> {
        let wanted = options.own_templates.iter().any(|own| own == fingerprint);
        self.sandbox.clone().filter(|_| wanted)
    }
}

impl OpenedModel {
    /// Whether this very model is asked for, with nothing changed but whose own templates are used. Then its weights
    /// need not be loaded again.
    pub(super) fn differs_in_template_only(
        &self,
        choice: &ModelChoice,
        options: &chat::ModelOptions,
        fingerprint: &str,
    ) -> bool {
        let same_otherwise = chat::ModelOptions {
            own_templates: options.own_templates.clone(),
            ..self.options.clone()
        };
        self.choice == *choice
            && self.info.fingerprint == fingerprint
            && self.options != *options
            && same_otherwise == *options
    }

    pub(super) fn set_sandbox(
        &mut self,
        sandbox: Option<Arc<dyn TemplateSandbox>>,
        options: &chat::ModelOptions,
    ) {
        self.model.engine.set_sandbox(sandbox.clone());
        self.sandbox = sandbox;
        self.options = options.clone();
        self.info.can_think = self.model.engine.summary().can_think;
        self.info.template = info(&self.model.engine);
    }

    /// The prompt of a conversation. Why there is none is noted, too, where the template is why.
    pub(super) fn prompt(
        &mut self,
        conversation: &Conversation,
        cancel: &AtomicBool,
    ) -> Result<Prompt, Failure> {
        let prompt = self.model.engine.prompt_unless(conversation, cancel);
        self.info.template.fault = match &prompt {
            Err(PromptError::Template(error)) => Some(error.to_string()),
            _ => None,
        };
        prompt.map_err(|error| {
            let is_own = self.info.template.used == chat::TemplateChoice::Own;
            let message = match error {
                PromptError::Template(_) | PromptError::Continue if is_own => format!(
                    "The model file's own chat template gave no prompt: {error}. To go on, use the built-in protocol: \
                     the model's card has a switch."
                ),
                _ => error.to_string(),
            };
            Failure::new(FailureCode::Other, message)
        })
    }
}

pub(super) fn info(engine: &Engine) -> chat::TemplateStatus {
    let template = engine.template();
    chat::TemplateStatus {
        used: match template.origin() {
            TemplateUse::BuiltIn => chat::TemplateChoice::BuiltIn,
            TemplateUse::Known => chat::TemplateChoice::Known,
            TemplateUse::Unknown => chat::TemplateChoice::Unknown,
            TemplateUse::Own => chat::TemplateChoice::Own,
        },
        fault: template.fault().map(ToString::to_string),
    }
}
