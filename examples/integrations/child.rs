//! Passes the deadline to a child process, and kills a child that does not stop at it.
//!
//! The child reads the deadline from an environment variable. It does not start work that needs
//! more time. A stuck child is killed at the cancellation, with all processes that it has started,
//! so that the thread is free.
//!
//! ```text
//! cargo run -p timeout-integration-examples --example child
//! ```

use std::env;
use std::error::Error as StdError;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use timeout_runtime::integrations::process::{Error, Process};
use timeout_runtime::{Deadline, timeout, workers};

const DEADLINE: &str = "EXAMPLE_DEADLINE";

/// Runs a child of this kind, and returns its output.
#[timeout(name = "output_of", limit = limit)]
fn output_of(kind: &'static str, limit: Duration) -> Result<String, Error> {
    let mut command = Command::new(env::current_exe()?);
    command
        .arg(kind)
        .env(DEADLINE, cancel_token.deadline().to_env())
        .stdin(Stdio::null());
    let output = Process::new(&mut command, &cancel_token).output()?;
    println!(
        "{kind}: the child exited by itself: {}",
        output.status.success()
    );
    Ok(String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned())
}

/// The main function of a child.
fn be_child(kind: &str) -> Result<(), Box<dyn StdError>> {
    let deadline = Deadline::from_env(DEADLINE)?.unwrap_or(Deadline::never());
    let needed = Duration::from_secs(match kind {
        "quick" => 0,
        _ => 3600,
    });
    if kind == "stuck" {
        loop {
            thread::park();
        }
    }
    if deadline.remaining().is_some_and(|left| left < needed) {
        println!("too little time for an hour of work");
    } else {
        println!("done in time");
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn StdError>> {
    if let Some(kind) = env::args().nth(1) {
        return be_child(&kind);
    }
    for (kind, limit) in [("quick", 60_000), ("careful", 60_000), ("stuck", 2_000)] {
        let output = output_of(kind, Duration::from_millis(limit));
        let running = workers::drain(Duration::from_secs(60));
        match output {
            Err(Error::Stopped { error, .. }) if error.is_timed_out() => {
                println!("{kind}: timed out");
            }
            output => println!("{kind}: {}", output?),
        }
        assert_eq!(running, 0, "an operation is still running");
    }
    Ok(())
}
