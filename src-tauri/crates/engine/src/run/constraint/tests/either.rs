//! Answers that are calls, or else JSON.

use super::*;

fn either() -> GenerateParams {
    let grams = json!({"type": "integer", "minimum": 1, "maximum": 99});
    let schema = json!({"type": "object", "properties": {"grams": grams}, "required": ["grams"]});
    params(Constraint::CallsOrJson {
        tools: [weather()].into(),
        schema: Arc::new(schema),
    })
}

#[test]
fn the_model_chooses_between_a_call_and_json() {
    let answer = |says: &str, tokenizer| {
        let script = CallScript {
            tokenizer,
            ..CallScript::smollm3(says)
        };
        script.answer(&either())
    };
    for before in ["", "\n", "\n\n"] {
        for has_tokens in [true, false] {
            let tags = || if has_tokens { tokenizer() } else { text_tags() };
            let (reported, finished) = answer(&format!("{before}{CALL}<|im_end|>"), tags());
            assert_eq!(reported.calls, [call("get_weather", ARGUMENTS)]);
            assert_eq!(reported.answer, "");
            assert_eq!(finished.reason, StopReason::EndOfTurn);
            let says = format!("{before}{{\"grams\": 6}}<|im_end|>");
            let (reported, finished) = answer(&says, tags());
            assert_eq!(reported.answer, format!("{before}{{\"grams\": 6}}"));
            assert_eq!((reported.calls, reported.call), (vec![], String::new()));
            assert_eq!(finished.reason, StopReason::EndOfTurn);
        }
    }
}

#[test]
fn nothing_else_is_an_answer() {
    let says = "I would rather talk.<|im_end|>";
    let (reported, finished) = CallScript::smollm3(says).answer(&either());
    let is_json = serde_json::from_str::<Value>(&reported.answer).is_ok();
    let is_cut = finished.reason == StopReason::MaxTokens;
    assert!(
        is_json || is_cut || !reported.calls.is_empty(),
        "{reported:?}"
    );
    assert!(!reported.answer.contains("talk"));
}

#[test]
fn a_model_whose_calls_are_json_too_cannot_choose() {
    let (_, failed) = CallScript::llama3("{}").try_answer(&either());
    assert!(matches!(failed, Err(GenerateError::Form(_))), "{failed:?}");
}
