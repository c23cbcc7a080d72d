//! Log-probabilities, in the forms of the two older routes.

use api::TokenLogprob;
use serde_json::{Map, Value, json};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the tokens as the chat route reports them.
pub fn of_chat(tokens: &[TokenLogprob]) -> Value {
    let entry = |bytes: &[u8], logprob: f32| json!({ "token": text(bytes), "logprob": logprob, "bytes": bytes });
    let tokens = tokens.iter().map(|token| {
        let mut object = entry(&token.bytes, token.logprob);
        let top = token.top.iter();
        object["top_logprobs"] = top.map(|(bytes, logprob)| entry(bytes, *logprob)).collect();
        object
    });
    tokens.collect()
}

/// Returns the tokens as the completions route reports them; the text begins at this character.
pub fn of_completion(tokens: &[TokenLogprob], begins: usize) -> Value {
    let mut offset = begins;
    let offsets = tokens.iter().map(|token| {
        let at = offset;
        offset += text(&token.bytes).chars().count();
        at
    });
    let offsets: Vec<usize> = offsets.collect();
    let top = tokens.iter().map(|token| {
        let likeliest = token.top.iter();
        let entries = likeliest.map(|(bytes, logprob)| (text(bytes), json!(*logprob)));
        entries.collect::<Map<_, _>>()
    });
    json!({
        "tokens": tokens.iter().map(|it| text(&it.bytes)).collect::<Vec<_>>(),
        "token_logprobs": tokens.iter().map(|it| it.logprob).collect::<Vec<_>>(),
        "top_logprobs": top.collect::<Vec<_>>(),
        "text_offset": offsets,
    })
}
