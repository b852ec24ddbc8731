//! Expected panics: recorded by the panic hook instead of printed.

#![allow(dead_code, unreachable_pub)] // Each test file uses its part.

use std::panic::{self, PanicHookInfo};
use std::sync::{Mutex, Once, PoisonError};

/// The prefix of an expected panic's text. Panics without text are expected too.
pub const WANTED: &str = "wanted: ";

/// One run of the panic hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The text, if the panic has one.
    pub text: Option<String>,
    pub file: String,
    pub line: u32,
}

static SHOWN: Mutex<Vec<Shown>> = Mutex::new(Vec::new());

/// Records expected panics from now on, in the whole process. All others are still printed.
pub fn record_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| match shown(info) {
            Some(shown) => lock().push(shown),
            None => others(info),
        }));
    });
}

/// The recorded panics with this text, in their order.
pub fn shown_as(text: &str) -> Vec<Shown> {
    let mut all = lock().clone();
    all.retain(|shown| shown.text.as_deref() == Some(text));
    all
}

fn lock() -> std::sync::MutexGuard<'static, Vec<Shown>> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn shown(info: &PanicHookInfo<'_>) -> Option<Shown> {
    let payload = info.payload();
    let text = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    let location = info.location()?;
    text.is_none_or(|text| text.starts_with(WANTED))
        .then(|| Shown {
            text: text.map(str::to_owned),
            file: location.file().to_owned(),
            line: location.line(),
        })
}
