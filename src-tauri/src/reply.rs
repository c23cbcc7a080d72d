//! Replies to commands, on a blocking thread, as they wait for others.

use chat::{Chat, Failure};

use app::models::Models;

pub type Reply<T> = Result<T, Failure>;

/// Runs a request on a blocking thread.
pub async fn ask<T: Send + 'static>(
    chat: &Chat,
    verb: impl FnOnce(&Chat) -> Result<T, Failure> + Send + 'static,
) -> Reply<T> {
    let chat = chat.clone();
    blocking(move || verb(&chat)).await?
}

/// Like [`ask`], for the models page.
pub async fn ask_models<T: Send + 'static>(
    models: &Models,
    verb: impl FnOnce(&Models) -> Result<T, Failure> + Send + 'static,
) -> Reply<T> {
    let models = models.clone();
    blocking(move || verb(&models)).await?
}

pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Reply<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Failure::other(error.to_string()))
}
