//! One call, several tasks and a thread: all work under the call's context, and all hear when its time is up.
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

/// A call like any other: it has a limit of its own, and inside another call that one's deadline too.
#[timeout(name = "shard", secs = 60)]
async fn shard(number: u32) -> Result<u32, TimeoutError> {
    // A shard that does not answer.
    cancel_token.cancelled().await;
    cancel_token.check().map(|()| number)
}

/// Blocking work that looks at the token around it.
fn write_index() -> Result<(), TimeoutError> {
    loop {
        CancelToken::current().sleep(Duration::from_millis(1))?;
    }
}

#[timeout(name = "search", secs = 1)]
async fn search(reports: Reports, all_run: Arc<Barrier>) -> Result<u32, TimeoutError> {
    // Tasks and threads of one's own join a call only on demand: this is the demand.
    let context = CallContext::current();

    let mut tasks = Vec::new();
    for number in 1..=3 {
        let (reports, all_run) = (reports.clone(), Arc::clone(&all_run));
        tasks.push(tokio::spawn(context.scope(async move {
            all_run.wait().await;
            let ending = shard(number).await;
            let _ = reports.send(format!("shard {number}: {}", told(ending.as_ref().err())));
            ending
        })));
    }
    thread::spawn(move || {
        context.run(|| {
            let ending = write_index();
            let _ = reports.send(format!("index thread: {}", told(ending.as_ref().err())));
        });
    });

    all_run.wait().await;
    let mut sum = 0;
    for task in tasks {
        sum += task.await.expect("a task does not panic")?;
    }
    Ok(sum)
}

fn told(error: Option<&TimeoutError>) -> &'static str {
    match error {
        None => "done",
        Some(error) if error.is_timed_out() => "timed out",
        Some(error) if error.is_deadline_exceeded() => "ran past the deadline around it",
        Some(_) => "cancelled",
    }
}

#[tokio::main]
async fn main() {
    let (sender, mut receiver) = unbounded_channel();
    let all_run = Arc::new(Barrier::new(4));
    let found = search(sender, all_run).await;
    println!("search: {}", told(found.as_ref().err()));

    // The last one to end drops the last sender.
    let mut reports = Vec::new();
    while let Some(report) = receiver.recv().await {
        reports.push(report);
    }
    reports.sort();
    println!("{}", reports.join("\n"));
}
