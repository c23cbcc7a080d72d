//! From chat's types to those of the wire, and back. No decisions here.

use std::path::Path;

use crate::error::{ErrorCode, WireError};
use crate::wire::*;

/// The page counts in `u32`; a store that holds more rows, or a date past 2106, saturates.
fn narrow(value: impl TryInto<u32>) -> u32 {
    value.try_into().unwrap_or(u32::MAX)
}

/// A figure with the few digits that it deserves, so that 0.6 does not become 0.6000000238.
fn figure(value: f32) -> f64 {
    value.to_string().parse().unwrap_or_default()
}

/// In tenths, which is as exact as anyone reads it.
fn megabytes(bytes: u64) -> f64 {
    f64::from(narrow((bytes + 50_000) / 100_000)) / 10.0
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

impl From<chat::Failure> for WireError {
    fn from(failure: chat::Failure) -> Self {
        let code = match failure.code {
            chat::FailureCode::NoModel => ErrorCode::NoModel,
            chat::FailureCode::BadModel => ErrorCode::BadModel,
            chat::FailureCode::MissingModel => ErrorCode::MissingModel,
            chat::FailureCode::Crashed => ErrorCode::Crashed,
            chat::FailureCode::NotFound => ErrorCode::NotFound,
            chat::FailureCode::Busy => ErrorCode::Busy,
            chat::FailureCode::TooLong => ErrorCode::TooLong,
            chat::FailureCode::AnswerFull => ErrorCode::AnswerFull,
            chat::FailureCode::Generation => ErrorCode::Generation,
            chat::FailureCode::DiskFull => ErrorCode::DiskFull,
            chat::FailureCode::Store => ErrorCode::Store,
            chat::FailureCode::Invalid => ErrorCode::Invalid,
        };
        Self {
            code,
            message: failure.message,
        }
    }
}

impl From<chat::ChatSummary> for ChatSummary {
    fn from(chat: chat::ChatSummary) -> Self {
        Self {
            id: narrow(chat.id.0),
            title: chat.title,
            created_at: narrow(chat.created_at),
            updated_at: narrow(chat.updated_at),
            writing: chat.writing,
        }
    }
}

impl From<chat::Role> for Role {
    fn from(role: chat::Role) -> Self {
        match role {
            chat::Role::User => Self::User,
            chat::Role::Assistant => Self::Assistant,
            chat::Role::System => Self::System,
            chat::Role::Tool => Self::Tool,
        }
    }
}

impl From<chat::MessageState> for MessageState {
    fn from(state: chat::MessageState) -> Self {
        match state {
            chat::MessageState::Writing => Self::Writing,
            chat::MessageState::Done => Self::Done,
            chat::MessageState::Stopped => Self::Stopped,
            chat::MessageState::Interrupted => Self::Interrupted,
            chat::MessageState::Limit => Self::Limit,
            chat::MessageState::Failed => Self::Failed,
        }
    }
}

impl From<chat::AnswerStats> for Stats {
    fn from(stats: chat::AnswerStats) -> Self {
        let chat::AnswerStats {
            figures: stats,
            model,
            device,
        } = stats;
        Self {
            prompt_tokens: narrow(stats.prompt_tokens),
            cached_tokens: narrow(stats.cached_tokens),
            tokens: narrow(stats.tokens),
            thinking_tokens: narrow(stats.thinking_tokens),
            first_token_ms: stats.first_token_ms.round() as u32,
            tokens_per_second: stats.tokens_per_second,
            read_per_second: stats.read_per_second,
            drafted_tokens: narrow(stats.drafted_tokens),
            accepted_tokens: narrow(stats.accepted_tokens),
            seed: narrow(stats.seed),
            model,
            device,
        }
    }
}

impl From<chat::Message> for Message {
    fn from(message: chat::Message) -> Self {
        Self {
            id: narrow(message.id.0),
            parent: message.parent.map(|id| narrow(id.0)),
            role: message.role.into(),
            text: message.text,
            thinking: message.thinking,
            thinking_ms: message.thinking_ms,
            thinks: message.thinks,
            state: message.state.into(),
            stats: message.stats.map(Into::into),
            error: message.error.map(Into::into),
            omitted: message.omitted.map(|omitted| Omitted {
                messages: omitted.messages,
                thinking: omitted.thinking,
            }),
            created_at: narrow(message.created_at),
            siblings: message.siblings.iter().map(|id| narrow(id.0)).collect(),
            seq: message.seq,
        }
    }
}

impl From<chat::Draft> for Draft {
    fn from(draft: chat::Draft) -> Self {
        Self {
            text: draft.text,
            pastes: draft.pastes,
            queue: draft.queue.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<chat::QueuedMessage> for QueuedMessage {
    fn from(message: chat::QueuedMessage) -> Self {
        Self {
            text: message.text,
            pastes: message.pastes,
            thinking: message.thinking,
        }
    }
}

impl From<QueuedMessage> for chat::QueuedMessage {
    fn from(message: QueuedMessage) -> Self {
        Self {
            text: message.text,
            pastes: message.pastes,
            thinking: message.thinking,
        }
    }
}

impl From<chat::ChatView> for ChatView {
    fn from(view: chat::ChatView) -> Self {
        Self {
            chat: view.chat.into(),
            after: view.after.map(|id| narrow(id.0)),
            messages: view.messages.into_iter().map(Into::into).collect(),
            draft: view.draft.into(),
        }
    }
}

impl From<chat::Device> for Device {
    fn from(device: chat::Device) -> Self {
        let kind = match device.kind {
            chat::DeviceKind::Cpu => DeviceKind::Cpu,
            chat::DeviceKind::Gpu => DeviceKind::Gpu,
            chat::DeviceKind::Cuda => DeviceKind::Cuda,
            chat::DeviceKind::Metal => DeviceKind::Metal,
        };
        Self {
            kind,
            name: device.name,
            reason: device.reason,
            report: device.report,
        }
    }
}

impl From<chat::Template> for Template {
    fn from(template: chat::Template) -> Self {
        Self {
            used: match template.used {
                chat::TemplateUse::BuiltIn => TemplateUse::BuiltIn,
                chat::TemplateUse::Known => TemplateUse::Known,
                chat::TemplateUse::Unknown => TemplateUse::Unknown,
                chat::TemplateUse::Own => TemplateUse::Own,
            },
            fault: template.fault,
        }
    }
}

impl From<chat::ModelStatus> for ModelStatus {
    fn from(status: chat::ModelStatus) -> Self {
        let state = match status.state {
            chat::ModelState::None => ModelState::None,
            chat::ModelState::Checking => ModelState::Checking,
            chat::ModelState::Loading => ModelState::Loading,
            chat::ModelState::Ready => ModelState::Ready,
            chat::ModelState::Failed => ModelState::Failed,
        };
        Self {
            state,
            name: status.name,
            file: status.file.as_deref().map(path_text),
            demo_model: status.demo_model,
            quantisation: status.quantisation,
            size_mb: megabytes(status.file_bytes),
            context_length: narrow(status.context_length),
            context_can_grow: status.context_can_grow,
            context_note: status.context_note,
            kv_mb: megabytes(status.kv_bytes),
            fingerprint: status.fingerprint,
            template: status.template.map(Into::into),
            device: status.device.map(Into::into),
            progress: figure(status.progress),
            error: status.error.map(Into::into),
            can_think: status.can_think,
            sampling: status.sampling.into(),
        }
    }
}

impl From<chat::Sampling> for SamplingDefaults {
    fn from(sampling: chat::Sampling) -> Self {
        Self {
            temperature: figure(sampling.temperature),
            top_p: figure(sampling.top_p),
            top_k: narrow(sampling.top_k),
            min_p: figure(sampling.min_p),
            repeat_penalty: figure(sampling.repeat_penalty),
        }
    }
}

impl From<chat::SamplingSettings> for Sampling {
    fn from(sampling: chat::SamplingSettings) -> Self {
        Self {
            temperature: sampling.temperature.map(figure),
            top_p: sampling.top_p.map(figure),
            top_k: sampling.top_k,
            min_p: sampling.min_p.map(figure),
            repeat_penalty: sampling.repeat_penalty.map(figure),
            seed: sampling.seed.map(narrow),
        }
    }
}

impl From<Sampling> for chat::SamplingSettings {
    fn from(sampling: Sampling) -> Self {
        let single = |value: f64| value as f32;
        Self {
            temperature: sampling.temperature.map(single),
            top_p: sampling.top_p.map(single),
            top_k: sampling.top_k,
            min_p: sampling.min_p.map(single),
            repeat_penalty: sampling.repeat_penalty.map(single),
            seed: sampling.seed.map(u64::from),
        }
    }
}

impl From<chat::Settings> for Settings {
    fn from(settings: chat::Settings) -> Self {
        Self {
            theme: match settings.theme {
                chat::Theme::System => Theme::System,
                chat::Theme::Light => Theme::Light,
                chat::Theme::Dark => Theme::Dark,
            },
            device: settings.device,
            threads: settings.threads,
            context_length: settings.context_length,
            kv_type: match settings.kv_type {
                chat::KvType::F16 | chat::KvType::F32 => KvType::F16,
                chat::KvType::Q8_0 => KvType::Q8_0,
            },
            own_templates: settings.own_templates,
            sampling: settings.sampling.into(),
            max_tokens: settings.max_tokens,
            lookup: settings.lookup,
            instructions: settings.instructions,
            thinking: settings.thinking,
            send_with: match settings.send_with {
                chat::SendWith::Enter => SendWith::Enter,
                chat::SendWith::CtrlEnter => SendWith::CtrlEnter,
            },
            zoom: settings.zoom,
            show_stats: settings.show_stats,
        }
    }
}

impl From<Settings> for chat::Settings {
    fn from(settings: Settings) -> Self {
        Self {
            theme: match settings.theme {
                Theme::System => chat::Theme::System,
                Theme::Light => chat::Theme::Light,
                Theme::Dark => chat::Theme::Dark,
            },
            device: settings.device,
            threads: settings.threads,
            context_length: settings.context_length,
            kv_type: match settings.kv_type {
                KvType::F16 => chat::KvType::F16,
                KvType::Q8_0 => chat::KvType::Q8_0,
            },
            own_templates: settings.own_templates,
            sampling: settings.sampling.into(),
            max_tokens: settings.max_tokens,
            lookup: settings.lookup,
            instructions: settings.instructions,
            thinking: settings.thinking,
            send_with: match settings.send_with {
                SendWith::Enter => chat::SendWith::Enter,
                SendWith::CtrlEnter => chat::SendWith::CtrlEnter,
            },
            zoom: settings.zoom,
            show_stats: settings.show_stats,
        }
    }
}

impl From<chat::SearchHit> for SearchHit {
    fn from(hit: chat::SearchHit) -> Self {
        Self {
            chat: narrow(hit.chat.0),
            title: hit.title,
            message: hit.message.map(|id| narrow(id.0)),
            snippet: hit.snippet,
            at: narrow(hit.at),
        }
    }
}

impl Snapshot {
    /// What chat knows, and where the app keeps its things.
    pub fn new(snapshot: chat::Snapshot, data_folder: &Path, log_file: &Path) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            data_folder: path_text(data_folder),
            log_file: path_text(log_file),
            first_start: snapshot.first_start,
            chats: snapshot.chats.into_iter().map(Into::into).collect(),
            current: snapshot.current.map(|id| narrow(id.0)),
            settings: snapshot.settings.into(),
            model: snapshot.model.into(),
            drafts: Drafts {
                new_chat: snapshot.new_chat_draft.into(),
            },
            max_threads: chat::max_threads(),
        }
    }
}

impl From<chat::GoodCopy> for DatabaseCopy {
    fn from(copy: chat::GoodCopy) -> Self {
        Self {
            name: copy.name,
            day: copy.day,
            size_mb: megabytes(copy.bytes),
            chats: copy.chats,
        }
    }
}

impl From<chat::ChatEvent> for HostEvent {
    fn from(event: chat::ChatEvent) -> Self {
        match event {
            chat::ChatEvent::Model(status) => Self::Model {
                status: status.into(),
            },
            chat::ChatEvent::ChatChanged(chat) => Self::ChatChanged { chat: chat.into() },
            chat::ChatEvent::ChatRemoved(chat) => Self::ChatRemoved {
                chat: narrow(chat.0),
            },
            chat::ChatEvent::Stage {
                chat,
                message,
                stage,
                done,
                total,
            } => Self::Stage {
                chat: narrow(chat.0),
                message: narrow(message.0),
                stage: match stage {
                    chat::Stage::Waiting => Stage::Waiting,
                    chat::Stage::Reading => Stage::Reading,
                    chat::Stage::Thinking => Stage::Thinking,
                    chat::Stage::Writing => Stage::Writing,
                },
                done,
                total,
            },
            chat::ChatEvent::Delta {
                chat,
                message,
                seq,
                thinking,
                text,
                tokens,
                tokens_per_second,
            } => Self::Delta {
                chat: narrow(chat.0),
                message: narrow(message.0),
                seq,
                thinking,
                text,
                tokens,
                tokens_per_second: figure(tokens_per_second),
            },
            chat::ChatEvent::Ended { chat, message } => Self::Ended {
                chat: narrow(chat.0),
                message: message.into(),
            },
            chat::ChatEvent::CopyFailed(failure) => Self::CopyFailed {
                error: failure.into(),
            },
        }
    }
}

#[cfg(test)]
mod tests;
