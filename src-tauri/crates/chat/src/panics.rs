//! Panics of a model, turned into failures.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::failure::{Failure, FailureCode};

/// Turns a panic into a failure, so that the thread survives. Returns whether there was one.
pub(crate) fn catch_panic<T>(
    code: FailureCode,
    act: impl FnOnce() -> Result<T, Failure>,
) -> (Result<T, Failure>, bool) {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(result) => (result, false),
        Err(panic) => {
            let cause = cause(panic.as_ref());
            // The panic hook logs it, without the text that a panic may quote.
            tracing::error!("the model panicked");
            (
                Err(Failure::new(
                    code,
                    format!("The model failed unexpectedly: {cause}"),
                )),
                true,
            )
        }
    }
}

/// [`catch_panic`], whose error has true if there was a panic.
pub(crate) fn without_panic<T>(
    act: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, (Failure, bool)> {
    let (result, panicked) = catch_panic(FailureCode::Other, act);
    result.map_err(|failure| (failure, panicked))
}

pub(crate) fn log_panic(act: impl FnOnce()) {
    let _ = catch_panic(FailureCode::Other, || {
        act();
        Ok(())
    });
}

fn cause(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("unknown cause")
}
