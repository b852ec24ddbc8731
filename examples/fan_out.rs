//! Shares one call's context with several tasks and a thread: its deadline cancels all of them.
//!
//! ```text
//! cargo run -p timeout-examples --example fan_out
//! ```

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use timeout_runtime::{CallContext, CancelToken, TimeoutError, timeout};
use tokio::sync::Barrier;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

type Reports = UnboundedSender<String>;

/// A nested call with a limit of its own. It also inherits the deadline of its enclosing call.
#[timeout(name = "shard", secs = 60)]
async fn shard(number: u32) -> Result<u32, TimeoutError> {
    // This shard never responds.
    cancel_token.cancelled().await;
    cancel_token.check().map(|()| number)
}

/// A blocking function that checks the token of its context.
fn write_index() -> Result<(), TimeoutError> {
    loop {
        CancelToken::current().sleep(Duration::from_millis(1))?;
    }
}

#[timeout(name = "search", secs = 1)]
async fn search(reports: Reports, all_run: Arc<Barrier>) -> Result<u32, TimeoutError> {
    // Tasks and threads do not inherit the context of a call by themselves.
    let context = CallContext::current();

    let mut tasks = Vec::new();
    for number in 1..=3 {
        let (reports, all_run) = (reports.clone(), Arc::clone(&all_run));
        tasks.push(tokio::spawn(context.scope(async move {
            all_run.wait().await;
            let result = shard(number).await;
            let error = result.as_ref().err();
            let _ = reports.send(format!("shard {number}: {}", describe(error)));
            result
        })));
    }
    thread::spawn(move || {
        context.run(|| {
            let result = write_index();
            let error = result.as_ref().err();
            let _ = reports.send(format!("index thread: {}", describe(error)));
        });
    });

    all_run.wait().await;
    let mut sum = 0;
    for task in tasks {
        sum += task.await.expect("a task does not panic")?;
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
    let (sender, mut receiver) = unbounded_channel();
    let all_run = Arc::new(Barrier::new(4));
    let found = search(sender, all_run).await;
    println!("search: {}", describe(found.as_ref().err()));

    // `recv` returns `None` after the last task or thread has dropped its sender.
    let mut reports = Vec::new();
    while let Some(report) = receiver.recv().await {
        reports.push(report);
    }
    reports.sort();
    println!("{}", reports.join("\n"));
}
