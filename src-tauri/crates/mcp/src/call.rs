//! A call of a tool, and its result as text.

use figures::count;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ResourceContents,
};
use rmcp::service::{Peer, ServiceError};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tools::{ToolError, ToolOutput};

use crate::clean;
use crate::log::StderrTail;

/// The connection to a server, as its task last left it.
#[derive(Clone)]
pub enum Link {
    /// There is none, for a reason.
    Down(String),
    /// It is being made.
    Starting,
    /// It is there.
    Up(Peer<RoleClient>),
}

/// A call.
pub struct RemoteCall {
    /// Name of the server, for errors.
    pub server: String,
    /// The server's own name of the tool.
    pub tool: String,
    /// Arguments.
    pub arguments: Map<String, Value>,
    /// Bytes of the result that are kept.
    pub result_limit: usize,
}

/// Calls a tool once the server is ready. Dropping the future cancels the call at the server.
pub async fn call(
    mut link: watch::Receiver<Link>,
    call: RemoteCall,
    tail: StderrTail,
) -> Result<ToolOutput, ToolError> {
    let server = &call.server;
    let failed = |sentence: String| ToolError::Failed(tail.without_secrets(&sentence));
    let peer = match link
        .wait_for(|link| !matches!(link, Link::Starting))
        .await
        .as_deref()
    {
        Ok(Link::Up(peer)) => peer.clone(),
        Ok(Link::Down(reason)) => {
            return Err(failed(format!(
                "The server \"{server}\" does not run. {reason}"
            )));
        }
        Ok(Link::Starting) | Err(_) => {
            return Err(failed(format!("The server \"{server}\" does not run.")));
        }
    };
    let params = CallToolRequestParams::new(call.tool).with_arguments(call.arguments);
    match peer.call_tool_once(params).await {
        Ok(CallToolResponse::Complete(result)) => {
            let text = shortened(text(&result), call.result_limit);
            if result.is_error == Some(true) {
                let is_empty = text.trim().is_empty();
                let silent = || format!("The server \"{server}\" gave no reason.");
                return Err(ToolError::Failed(if is_empty { silent() } else { text }));
            }
            Ok(ToolOutput { text })
        }
        Ok(_) => Err(failed(format!(
            "The server \"{server}\" asks for more than the arguments, which Goldcrest cannot give."
        ))),
        Err(ServiceError::McpError(error)) => {
            let message = clean::paragraphs(&error.message, 2_000);
            Err(failed(format!(
                "The server \"{server}\" refused the call: {message}"
            )))
        }
        Err(ServiceError::UnexpectedResponse) => Err(failed(format!(
            "The server \"{server}\" answered in a form that MCP does not have."
        ))),
        Err(_) => {
            // Its task says what happened, as soon as it knows.
            let reason = match link
                .wait_for(|link| !matches!(link, Link::Up(_)))
                .await
                .as_deref()
            {
                Ok(Link::Down(reason)) => reason.clone(),
                _ => "It was stopped.".to_owned(),
            };
            Err(failed(format!(
                "The server \"{server}\" ended during the call. {reason}"
            )))
        }
    }
}

/// Returns the texts of a result, a line for each content of another kind, or else its structured content.
fn text(result: &CallToolResult) -> String {
    let has_text = result.content.iter().any(|block| match block {
        ContentBlock::Text(_) => true,
        ContentBlock::Resource(it) => {
            matches!(it.resource, ResourceContents::TextResourceContents { .. })
        }
        _ => false,
    });
    let mut parts: Vec<String> = result.content.iter().map(part).collect();
    if let Some(structured) = result.structured_content.as_ref().filter(|_| !has_text) {
        parts.insert(0, structured.to_string());
    }
    parts.join("\n")
}

fn part(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(it) => it.text.clone(),
        ContentBlock::Image(it) => encoded("image", &it.mime_type, &it.data),
        ContentBlock::Audio(it) => encoded("audio", &it.mime_type, &it.data),
        ContentBlock::Resource(it) => match &it.resource {
            ResourceContents::TextResourceContents { text, .. } => text.clone(),
            ResourceContents::BlobResourceContents {
                mime_type, blob, ..
            } => encoded("file", mime_type.as_deref().unwrap_or("unknown type"), blob),
            _ => "[content of an unknown kind]".to_owned(),
        },
        ContentBlock::ResourceLink(it) => {
            let name = clean::line(&it.name, 200);
            format!("[link, {name}, {}]", clean::line(&it.uri, 500))
        }
        _ => "[content of an unknown kind]".to_owned(),
    }
}

/// Describes content in base64, such as `[image, image/png, 12 kB]`.
fn encoded(kind: &str, mime_type: &str, base64: &str) -> String {
    let bytes = base64.trim_end_matches('=').len() * 3 / 4;
    let size = if bytes < 1_000 {
        format!("{bytes} bytes")
    } else {
        format!("{} kB", count(bytes / 1_000))
    };
    format!("[{kind}, {}, {size}]", clean::line(mime_type, 60))
}

/// Cuts a text that is longer than the limit, and says so.
fn shortened(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let end = text.floor_char_boundary(limit);
        let rest = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("\n[{} more bytes were left out]", count(rest)));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text_of(result: Value) -> String {
        text(&serde_json::from_value(result).expect("a result"))
    }

    #[test]
    fn a_result_becomes_text() {
        let png = json!({ "type": "image", "mimeType": "image/png", "data": "A".repeat(16_000) });
        let wav = json!({ "type": "audio", "mimeType": "audio/wav\n]", "data": "AAAA" });
        let blob = json!({ "type": "resource", "resource": { "uri": "a:b", "blob": "AA==" } });
        let page = json!({ "type": "resource", "resource": { "uri": "a:b", "text": "inside" } });
        let link = json!({ "type": "resource_link", "name": "report", "uri": "file:///a" });
        let words = |text| json!({ "type": "text", "text": text });
        assert_eq!(
            text_of(json!({ "content": [words("one"), png, wav, blob, page, link, words("two")] })),
            "one\n[image, image/png, 12 kB]\n[audio, audio/wav ], 3 bytes]\n[file, unknown type, 1 bytes]\ninside\n\
             [link, report, file:///a]\ntwo"
        );
        let structured = json!({ "content": [], "structuredContent": { "b": 1, "a": [true] } });
        assert_eq!(text_of(structured), r#"{"b":1,"a":[true]}"#);
        let both = json!({ "content": [words("one")], "structuredContent": { "b": 1 } });
        assert_eq!(text_of(both), "one");
        assert_eq!(text_of(json!({ "content": [] })), "");
    }

    #[test]
    fn a_long_result_is_cut_between_characters() {
        assert_eq!(shortened("üü".to_owned(), 4), "üü");
        assert_eq!(
            shortened("üüü".to_owned(), 5),
            "üü\n[2 more bytes were left out]"
        );
    }
}
