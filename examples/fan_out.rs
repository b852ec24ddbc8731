//! Works on one call with several tasks and a blocking function: its deadline cancels all of them,
//! and the call waits until they have ended.
//!
//! ```text
//! cargo run -p timeout-examples --example fan_out
//! ```

use std::time::Duration;

use timeout_runtime::{CallTasks, CancelToken, TimeoutError, timeout};

/// A nested call with a limit of its own. It also inherits the deadline of its enclosing call.
#[timeout(name = "shard", secs = 60)]
async fn shard(number: u32) -> Result<u32, TimeoutError> {
    // This shard never responds.
    cancel_token.cancelled().await;
    cancel_token.check().map(|()| number)
}

/// A blocking function that checks the token of its context.
fn write_index() -> Result<u32, TimeoutError> {
    loop {
        CancelToken::current().sleep(Duration::from_millis(1))?;
    }
}

/// Prints how a part of the search has ended.
fn report(part: &str, found: Result<u32, TimeoutError>) -> Result<u32, TimeoutError> {
    println!("{part}: {}", describe(found.as_ref().err()));
    found
}

/// With `grace`, the call waits for its tasks after the deadline.
#[timeout(name = "search", secs = 1, grace = "30s")]
async fn search() -> Result<u32, TimeoutError> {
    let mut tasks = CallTasks::new();
    for number in 1..=3 {
        tasks.spawn(async move { report(&format!("shard {number}"), shard(number).await) });
    }
    tasks.spawn_blocking(|| report("index", write_index()));

    let mut sum = 0;
    while let Some(found) = tasks.join_next().await {
        match found {
            Ok(found) => sum += found,
            Err(error) => {
                tasks.shutdown().await;
                return Err(error);
            }
        }
    }
    Ok(sum)
}

fn describe(error: Option<&TimeoutError>) -> &'static str {
    match error {
        None => "done",
        Some(error) if error.is_timed_out() => "timed out",
        Some(error) if error.is_deadline_exceeded() => "exceeded the enclosing deadline",
        Some(_) => "cancelled",
    }
}

#[tokio::main]
async fn main() {
    let found = search().await;
    println!("search: {}", describe(found.as_ref().err()));
}
