//! Rows of the app in the store.

/// Rows that the app stores beside the chats, and that mean nothing to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppRow {
    /// The tool servers.
    Servers,
    /// The local API.
    Api,
}

impl AppRow {
    pub(crate) fn key(self) -> &'static str {
        match self {
            AppRow::Servers => "app.servers",
            AppRow::Api => "app.api",
        }
    }
}
