//! A conversation that outgrows the context. The scripted model counts a token per word, and ten for the header.

use chat::{FailureCode, MessageId, MessageState, ModelChoice, Omitted, Settings};
use inference::{Conversation, StopReason};

use crate::scripted::{Bench, LONGEST_TOKEN, Script, Step};

/// Makes a bench with answers of at most 20 tokens: prompts up to 80 tokens fit.
fn bench() -> Bench {
    let script = Script::default();
    script.context(100);
    let bench = Bench::scripted(&script);
    bench
        .chat
        .save_settings(Settings {
            max_tokens: Some(20),
            ..Settings::default()
        })
        .unwrap();
    bench
}

fn words(n: usize) -> String {
    vec!["word"; n].join(" ")
}

const LONG_THOUGHT: Step = Step::Think("a b c d e f g h i j k l m n o p q r s t");

fn thinking(bench: &Bench) -> Vec<bool> {
    let turn = bench.script.last_turn();
    let answers = turn
        .history
        .iter()
        .filter(|m| m.role == chat::Role::Assistant);
    answers.map(|m| m.thinking.is_some()).collect()
}

#[test]
fn earlier_thinking_goes_in_one_go_and_stays_out() {
    let mut bench = bench();
    for _ in 0..4 {
        bench.script.answer([LONG_THOUGHT, Step::Say("Yes.")]);
    }
    let chat = bench.ask(None, "One?").chat.id;
    bench.ask(Some(chat), "Two?");
    assert_eq!(
        thinking(&bench),
        [true],
        "10 + 22 + 1 tokens are far from 70"
    );
    bench.ask(Some(chat), "Three?");
    assert_eq!(thinking(&bench), [true, true], "10 + 2 * 22 + 1");

    let view = bench.ask(Some(chat), "Four?");
    assert_eq!(
        thinking(&bench),
        [false, false, true],
        "77 tokens are over 70: all but the last"
    );
    let marked = view.messages.last().unwrap();
    assert_eq!(
        marked.omitted,
        Some(Omitted {
            messages: 0,
            thinking: 2
        })
    );
    assert_eq!(
        bench.script.last_turn().history[1].ids,
        None,
        "the ids hold the thinking too"
    );
    assert!(bench.script.last_turn().history[5].ids.is_some());

    bench.script.answer([Step::Say("Yes.")]);
    bench.ask(Some(chat), "Five?");
    assert_eq!(
        thinking(&bench),
        [false, false, true, true],
        "what was cut stays cut, no more"
    );
}

#[test]
fn then_the_oldest_turns_go_and_the_answer_says_so() {
    let mut bench = bench();
    let chat = bench.ask(None, &format!("first {}", words(19))).chat.id;
    bench.ask(Some(chat), &format!("second {}", words(19)));
    bench.ask(Some(chat), &format!("third {}", words(9)));
    assert_eq!(bench.script.last_turn().history.len(), 5, "62 tokens fit");

    let view = bench.ask(Some(chat), &format!("fourth {}", words(17)));
    let history = bench.script.last_turn().history;
    assert!(history[0].text.starts_with("second"), "{:?}", history[0]);
    let marked = view.messages.last().unwrap();
    assert_eq!(
        marked.omitted,
        Some(Omitted {
            messages: 2,
            thinking: 0
        })
    );
    assert_eq!(view.messages.len(), 8, "nothing is gone from the chat");

    // The whole would not fit, but without the first turn it has 62 tokens: nothing more has to go.
    bench.ask(Some(chat), "fifth");
    assert!(
        bench.script.last_turn().history[0]
            .text
            .starts_with("second")
    );
}

#[test]
fn a_message_that_does_not_fit_fails_with_the_numbers_and_is_kept() {
    let mut bench = bench();
    let chat = bench.ask(None, "Short.").chat.id;
    let long = words(90);
    let view = bench.chat.send(Some(chat), &long, true).unwrap();
    let ended = bench.until_ended();
    assert_eq!(ended.state, MessageState::Failed);
    let error = ended.error.unwrap();
    assert_eq!(error.code, FailureCode::TooLong);
    // The page has said the same before.
    let counted = bench.chat.context_usage(Some(chat), &long, 0, true);
    let counted = counted.unwrap().unwrap();
    assert_eq!((counted.message, counted.message_room), (90, 70));
    let said = "This message is too long: 90 tokens, with room for 70.";
    assert!(error.message.starts_with(said), "{}", error.message);
    assert!(error.message.contains("open a larger model"));
    assert_eq!(view.messages[0].text(), long);
    assert_eq!(bench.script.turns().len(), 1, "the model was not asked");

    // A shorter edit is answered.
    bench
        .chat
        .edit_message(view.messages[0].id, "Shorter.", Some(true))
        .unwrap();
    assert_eq!(bench.until_ended().state, MessageState::Done);
}

#[test]
fn a_continued_answer_keeps_its_question() {
    let mut bench = bench();
    let chat = bench.ask(None, &words(30)).chat.id;
    let long = "a b c d e f g h i j k l m n o p q r s t u v w x y z";
    bench
        .script
        .answer([Step::Say(long), Step::End(StopReason::MaxTokens)]);
    bench.chat.send(Some(chat), words(20), true).unwrap();
    let answer = bench.until_ended();
    bench.script.answer([Step::Say(" and so on")]);
    bench.chat.continue_answer(answer.id).unwrap();
    let ended = bench.until_ended();
    assert_eq!(
        ended.omitted,
        Some(Omitted {
            messages: 2,
            thinking: 0
        })
    );
    let turn = bench.script.last_turn();
    assert_eq!((turn.resume, turn.history.len()), (true, 2));
    assert_eq!(ended.text(), format!("{long} and so on"));
}

#[test]
fn a_text_that_only_looks_too_long_is_kept() {
    let mut bench = bench();
    let chat = bench.ask(None, &"x".repeat(2000)).chat.id;
    bench.ask(Some(chat), "Two?");
    assert_eq!(
        bench.script.last_turn().history.len(),
        3,
        "2000 characters, but one token"
    );
}

/// Makes an answer of `words` tokens that reaches its limit.
fn limited(words: usize) -> Vec<Step> {
    let mut steps = vec![Step::Say("word "); words];
    steps.push(Step::End(StopReason::MaxTokens));
    steps
}

/// Makes, after a turn of two tokens, an answer of `answered` tokens to a question of `asked`.
fn second_answer(bench: &mut Bench, asked: usize, answered: usize) -> MessageId {
    let chat = bench.ask(None, "One?").chat.id;
    bench.script.answer(limited(answered));
    bench.ask(Some(chat), &words(asked)).messages[3].id
}

#[test]
fn a_long_answer_goes_on_as_long_as_the_context_has_room() {
    let mut bench = bench();
    let answer = second_answer(&mut bench, 5, 68);
    // 10 + 2 + 5 + 68 tokens are used; the answer has used the 20 that others get.
    bench.script.answer(limited(13));
    bench.chat.continue_answer(answer).unwrap();
    let ended = bench.until_ended();
    assert_eq!((ended.state, ended.omitted), (MessageState::Limit, None));
    assert_eq!(bench.script.last_turn().history.len(), 4);
    assert_eq!(ended.text().split_whitespace().count(), 81);

    // At 98 tokens another one fits, beside its turn and the one before.
    bench.script.answer(limited(2));
    bench.chat.continue_answer(answer).unwrap();
    assert_eq!(bench.until_ended().state, MessageState::Limit);
    assert_eq!(bench.script.last_turn().history.len(), 4);

    // At 100 none does. Without the first turn there is room for two.
    bench.script.answer(limited(2));
    bench.chat.continue_answer(answer).unwrap();
    let ended = bench.until_ended();
    assert_eq!(
        ended.omitted,
        Some(Omitted {
            messages: 2,
            thinking: 0
        })
    );
    assert_eq!(ended.text().split_whitespace().count(), 85);

    // Now the answer and its question fill the context.
    let asked = bench.script.turns().len();
    bench.chat.continue_answer(answer).unwrap();
    let full = bench.until_ended();
    let error = full.error.unwrap();
    assert_eq!(
        (full.state, error.code),
        (MessageState::Failed, FailureCode::AnswerFull)
    );
    assert!(
        error.message.contains("context of 100 tokens"),
        "{}",
        error.message
    );
    assert_eq!(full.parts, ended.parts, "it is kept");
    assert_eq!(bench.script.turns().len(), asked);
}

#[test]
fn an_answer_of_another_model_has_had_its_room_too() {
    let mut bench = bench();
    bench.script.answer(limited(70));
    let answer = bench.ask(None, &words(5)).messages[1].id;
    bench
        .chat
        .open_model(ModelChoice::File("other.gguf".into()))
        .unwrap();
    bench.until_ready();
    bench.chat.continue_answer(answer).unwrap();
    assert_eq!(bench.until_ended().state, MessageState::Done);
    assert_eq!(bench.script.last_turn().history[1].ids, None);
}

#[test]
fn a_short_answer_that_is_continued_has_the_rest_of_its_room() {
    let mut bench = bench();
    // 10 + 2 + 65 + 5 tokens: 5 of the 20 for the answer are used, so 85 are the limit.
    let answer = second_answer(&mut bench, 65, 5);
    bench.script.answer([Step::End(StopReason::MaxTokens)]);
    bench.chat.continue_answer(answer).unwrap();
    assert_eq!(bench.until_ended().omitted, None);
    assert_eq!(bench.script.last_turn().history.len(), 4);

    // It still has 20 of 25 tokens to come: the limit is 80.
    let settings = Settings {
        max_tokens: Some(25),
        ..Settings::default()
    };
    bench.chat.save_settings(settings).unwrap();
    bench.chat.continue_answer(answer).unwrap();
    assert_eq!(bench.until_ended().state, MessageState::Done);
    assert_eq!(bench.script.last_turn().history.len(), 2);
}

#[test]
fn an_answer_goes_on_with_what_it_was_begun_with() {
    let mut bench = bench();
    let chat = bench.ask(None, &words(30)).chat.id;
    bench.ask(Some(chat), &words(20));
    // 10 + 31 + 21 + 19 tokens do not fit 80; without the first turn they are 50.
    bench.script.answer(limited(17));
    let view = bench.ask(Some(chat), &words(19));
    let answer = view.messages.last().unwrap();
    let omitted = Some(Omitted {
        messages: 2,
        thinking: 0,
    });
    assert_eq!(answer.omitted, omitted);
    bench.script.answer(limited(2));
    bench.chat.continue_answer(answer.id).unwrap();
    assert_eq!(bench.until_ended().omitted, omitted);
    assert_eq!(bench.script.last_turn().history.len(), 4);

    // A model with a larger context takes all of it.
    bench.script.context(1000);
    let other = ModelChoice::File("other.gguf".into());
    bench.chat.open_model(other).unwrap();
    bench.until_ready();
    bench.chat.continue_answer(answer.id).unwrap();
    assert_eq!(bench.until_ended().omitted, None);
    assert_eq!(bench.script.last_turn().history.len(), 6);
}

#[test]
fn what_is_left_takes_three_fifths_of_the_context_at_most() {
    let mut bench = bench();
    let chat = bench.ask(None, &words(15)).chat.id;
    for _ in 0..2 {
        bench.ask(Some(chat), &words(15));
    }
    // 10 + 3 * 16 + 27 tokens do not fit 80; without the first turn they are 69.
    let view = bench.ask(Some(chat), &words(27));
    let omitted = view.messages.last().unwrap().omitted.unwrap();
    assert_eq!(omitted.messages, 4);
}

/// Returns the bytes of messages in the longest prompt.
fn longest_prompted(bench: &Bench) -> usize {
    let bytes = |asked: &Conversation| asked.messages.iter().map(|m| m.text.len()).sum();
    bench.script.prompted().iter().map(bytes).max().unwrap_or(0)
}

#[test]
fn what_cannot_fit_is_refused_without_a_prompt_of_it() {
    let mut bench = bench();
    let chat = bench.ask(None, "Short.").chat.id;
    // One token for the scripted model; but no model's tokens are so long.
    let long = "x".repeat(101 * LONGEST_TOKEN);
    for chat in [None, Some(chat)] {
        bench.chat.send(chat, &long, true).unwrap();
        let error = bench.until_ended().error.unwrap();
        assert_eq!(error.code, FailureCode::TooLong);
        let room = "this model has room for 70 tokens";
        assert!(error.message.contains(room), "{}", error.message);
    }
    assert!(longest_prompted(&bench) < 10);

    bench
        .chat
        .send(Some(chat), "x".repeat(99 * LONGEST_TOKEN), true)
        .unwrap();
    assert_eq!(bench.until_ended().state, MessageState::Done);
}

#[test]
fn no_prompt_is_made_of_a_long_history_as_a_whole() {
    let mut bench = bench();
    let long = vec!["x".repeat(20); 40].join(" ");
    let chat = bench.ask(None, &long).chat.id;
    for _ in 0..2 {
        bench.ask(Some(chat), &long);
        assert_eq!(bench.script.last_turn().history.len(), 1);
    }
    let most = longest_prompted(&bench);
    assert!(most < 3 * long.len(), "{most}");
}

#[test]
fn instructions_count_among_what_cannot_fit() {
    let mut bench = bench();
    let settings = Settings {
        instructions: "x".repeat(60 * LONGEST_TOKEN),
        ..Settings::default()
    };
    bench.chat.save_settings(settings).unwrap();
    bench
        .chat
        .send(None, "x".repeat(41 * LONGEST_TOKEN), true)
        .unwrap();
    let error = bench.until_ended().error.unwrap();
    assert_eq!(error.code, FailureCode::TooLong);
    assert_eq!(longest_prompted(&bench), 0);
}

#[test]
fn thinking_of_messages_that_are_left_out_is_not_counted_again() {
    let mut bench = bench();
    for _ in 0..3 {
        bench.script.answer([LONG_THOUGHT, Step::Say("Yes.")]);
    }
    let chat = bench.ask(None, &words(10)).chat.id;
    bench.ask(Some(chat), &words(10));
    let view = bench.ask(Some(chat), &words(20));
    assert_eq!(
        view.messages.last().unwrap().omitted,
        Some(Omitted {
            messages: 0,
            thinking: 1
        })
    );
    let view = bench.ask(Some(chat), &words(9));
    assert_eq!(
        view.messages.last().unwrap().omitted,
        Some(Omitted {
            messages: 4,
            thinking: 0
        }),
        "60 tokens are left: the last turn, and this"
    );
}

#[test]
fn stop_works_while_a_prompt_is_made() {
    let mut bench = bench();
    bench.script.slow_prompt();
    let view = bench.chat.send(None, "How heavy?", true).unwrap();
    bench.chat.stop(view.chat.id).unwrap();
    let ended = bench.until_ended();
    assert_eq!((ended.state, ended.error), (MessageState::Stopped, None));
    assert_eq!(bench.script.turns().len(), 0);
}

#[test]
fn a_prompt_is_made_once_for_an_answer() {
    let mut bench = bench();
    let chat = bench.ask(None, "How heavy?").chat.id;
    assert_eq!(bench.script.prompted().len(), 1);
    bench.ask(Some(chat), "How long?");
    assert_eq!(bench.script.prompted().len(), 2);
    // A continued answer has its ids, so nothing is counted beside the prompt.
    bench
        .script
        .answer([Step::Say("Six"), Step::End(StopReason::MaxTokens)]);
    let view = bench.ask(Some(chat), "And now?");
    let answer = view.messages.last().unwrap().id;
    bench.chat.continue_answer(answer).unwrap();
    bench.until_ended();
    assert_eq!(bench.script.prompted().len(), 4);
}

#[test]
fn no_prompt_is_made_twice_while_a_conversation_is_cut() {
    let mut bench = bench();
    let chat = bench.ask(None, &words(10)).chat.id;
    for _ in 0..8 {
        let before = bench.script.prompted().len();
        let view = bench.ask(Some(chat), &words(10));
        let made = &bench.script.prompted()[before..];
        for (at, prompt) in made.iter().enumerate() {
            assert!(!made[..at].contains(prompt), "{} prompts", made.len());
        }
        let omitted = view.messages.last().unwrap().omitted;
        assert!(
            omitted.is_some() || made.len() == 1,
            "{} prompts",
            made.len()
        );
    }
    let last = bench.chat.open_chat(chat).unwrap();
    assert!(
        last.messages.last().unwrap().omitted.is_some(),
        "it was cut"
    );
}
