//! The tables: in each module the schema steps, the row, the reads and the writes.

pub(crate) mod chat;
pub(crate) mod deleted;
pub(crate) mod draft;
pub(crate) mod folder;
pub(crate) mod id;
pub(crate) mod json;
pub(crate) mod message;
pub(crate) mod part;
pub(crate) mod preset;
pub(crate) mod search;
pub(crate) mod setting;
pub(crate) mod window;

use crate::migrate::Step;

/// Returns all steps of all tables. Within a version, tables come before those that refer to them.
pub(crate) fn steps() -> Vec<Step> {
    [
        folder::STEPS,
        chat::STEPS,
        message::STEPS,
        deleted::STEPS,
        setting::STEPS,
        draft::STEPS,
        preset::STEPS,
        window::STEPS,
        search::STEPS,
    ]
    .concat()
}
