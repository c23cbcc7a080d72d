//! `goldcrest chats`: the chats with their ids.

use std::io::Write;

use figures::without_bidi_controls;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;

use super::args::ChatsArgs;
use super::export::snapshot;
use super::folders::data_folder;
use super::output::{self, CliError};
use crate::visible::on_one_line;

pub fn run(args: &ChatsArgs) -> Result<(), CliError> {
    let snapshot = snapshot(&data_folder()?)?;
    let chats = snapshot.records().list();
    let chats = chats.map_err(|error| CliError::message(error.to_string()))?;
    if args.json {
        let chats = chats.iter().map(|(chat, messages)| {
            json!({
                "id": chat.id.0,
                "title": chat.title,
                "createdAt": chat.created_at,
                "updatedAt": chat.updated_at,
                "messages": messages,
            })
        });
        return output::json(&chats.collect::<Vec<_>>());
    }
    let zone = TimeZone::system();
    let mut out = output::stdout();
    for (chat, messages) in chats {
        let day = Timestamp::from_second(chat.updated_at);
        let day = day.map_or(String::new(), |at| {
            at.to_zoned_datetime(zone.clone()).date().to_string()
        });
        let title = without_bidi_controls(&chat.title);
        let (id, title) = (chat.id.0, on_one_line(&title));
        writeln!(out, "{id:>6}  {day:<10}  {messages:>5}  {title}")?;
    }
    Ok(out.flush()?)
}
