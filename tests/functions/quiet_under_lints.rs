//! Strict lints report the same in annotated functions as in plain ones. The test passes if this
//! file compiles and clippy reports nothing.

#![deny(warnings, missing_docs, unused, unused_qualifications, unreachable_pub)]
#![deny(single_use_lifetimes, elided_lifetimes_in_paths)]
#![deny(let_underscore_drop, unused_results, variant_size_differences)]
#![deny(clippy::all, clippy::pedantic, clippy::nursery, clippy::cargo)]
#![deny(
    clippy::absolute_paths,
    clippy::allow_attributes,
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::default_numeric_fallback,
    clippy::else_if_without_else,
    clippy::exhaustive_structs,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::let_underscore_must_use,
    clippy::let_underscore_untyped,
    clippy::min_ident_chars,
    clippy::missing_docs_in_private_items,
    clippy::multiple_inherent_impl,
    clippy::panic,
    clippy::pattern_type_mismatch,
    clippy::ref_patterns,
    clippy::shadow_reuse,
    clippy::shadow_same,
    clippy::shadow_unrelated,
    clippy::str_to_string,
    clippy::unreachable,
    clippy::unwrap_in_result,
    clippy::unwrap_used,
    clippy::used_underscore_binding
)]
// Lints that the workspace allows in manifests are not part of this test.
#![allow(clippy::cargo_common_metadata, clippy::multiple_crate_versions)]

use core::future::ready;
use std::sync::Arc;

use futures::executor::block_on;
use timeout_runtime::{CancelToken, TimeoutError, timeout};

type CallResult = Result<u32, TimeoutError>;

/// One line.
#[timeout(secs = 60)]
#[rustfmt::skip]
fn one_line() -> CallResult { Ok(42) }

/// Nothing.
#[timeout(secs = 60, fallback = |_| ())]
fn nothing() {}

/// Nothing, which goes nowhere if it is late.
#[timeout(secs = 60, fallback = |_| (), on_late = |()| {})]
fn nothing_late() {}

/// One number, which is dropped if it is late.
#[timeout(secs = 60, on_late = drop)]
async fn one_number() -> CallResult {
    ready(Ok(42)).await
}

/// Nothing much.
#[timeout(secs = 60, fallback = |_| ())]
fn nothing_much() {
    drop(String::new());
}

/// Not used.
#[timeout(secs = 60)]
fn not_used(_row: u32) -> CallResult {
    Ok(42)
}

/// Not bound.
#[timeout(secs = 60)]
fn not_bound(_: u32, (_, row): (u32, u32)) -> CallResult {
    Ok(row)
}

/// Changed.
#[timeout(secs = 60)]
fn changed(mut row: u32) -> CallResult {
    row = row.saturating_add(1);
    Ok(row)
}

/// A limit without a name.
#[timeout("1m")]
fn limit_without_a_name(mut row: u32, _: u32) -> CallResult {
    row = row.saturating_add(1);
    Ok(row)
}

/// Only returns.
#[timeout(secs = 60)]
fn only_returns(row: u32) -> CallResult {
    #![allow(clippy::needless_return)] // The body is what it is.
    return Ok(row);
}

/// Used by options.
#[timeout(ms = limit, upstream = stop)]
fn used_by_options(limit: u64, stop: CancelToken) -> CallResult {
    Ok(42)
}

/// Asks.
#[timeout(secs = 60)]
fn asks(row: u32) -> CallResult {
    cancel_token.check()?;
    Ok(row)
}

/// Passes on.
#[timeout(secs = 60)]
fn passes_on(cancel_token: &CancelToken) -> CallResult {
    cancel_token.check()?;
    Ok(42)
}

/// In place.
#[timeout(secs = 60, run = "inline")]
fn in_place(row: &str) -> CallResult {
    Ok(row.len().try_into().unwrap_or(0))
}

/// Waits.
#[timeout(secs = 60)]
async fn waits(row: &str, mut more: u32) -> CallResult {
    more = more.saturating_add(row.len().try_into().unwrap_or(0));
    ready(()).await;
    Ok(more)
}

/// Later.
#[timeout(secs = 60)]
fn later(row: u32) -> impl Future<Output = CallResult> + Send {
    ready(Ok(row))
}

/// Only ends by looping.
#[timeout(secs = 60)]
fn only_ends_by_looping() -> CallResult {
    loop {
        if cancel_token.is_cancelled() || !cancel_token.is_cancelled() {
            break Ok(42);
        }
    }
}

/// A type with methods.
struct Table(u32);

impl Table {
    /// Waits.
    #[timeout(secs = 60)]
    async fn waits(&self, row: u32) -> CallResult {
        ready(()).await;
        Ok(self.0.saturating_add(row))
    }

    /// Changes.
    #[timeout(secs = 60)]
    async fn changes(&mut self) -> CallResult {
        ready(()).await;
        self.0 = 42;
        Ok(42)
    }

    /// Scan.
    #[timeout(secs = 60)]
    fn scan(self: Arc<Self>) -> CallResult {
        Ok(self.0)
    }
}

/// Polls a future that is ready.
fn now(future: impl Future<Output = CallResult>) -> CallResult {
    block_on(future)
}

/// Ends.
#[test]
#[timeout("1m")]
fn ends() {
    drop(String::new());
}

/// Ends too.
#[timeout("1m", run = "inline")]
#[test]
fn ends_too() {}

/// Waits, and ends.
#[timeout("1m", on_late = drop)]
#[tokio::test]
async fn waits_and_ends() {
    ready(()).await;
}

#[test]
fn annotated_functions_compile_without_warnings() -> Result<(), TimeoutError> {
    nothing();
    nothing_late();
    nothing_much();
    let mut table = Table(42);
    let values = [
        one_line()?,
        now(one_number())?,
        not_used(1)?,
        not_bound(1, (2, 42))?,
        changed(41)?,
        limit_without_a_name(41, 1)?,
        only_returns(42)?,
        used_by_options(60_000, CancelToken::new())?,
        asks(42)?,
        passes_on(&CancelToken::new())?,
        in_place(&" ".repeat(42))?,
        now(waits(&" ".repeat(2), 40))?,
        now(later(42))?,
        only_ends_by_looping()?,
        now(table.waits(0))?,
        now(table.changes())?,
        Arc::new(table).scan()?,
    ];
    assert!(values.iter().all(|value| *value == 42), "{values:?}");
    Ok(())
}
