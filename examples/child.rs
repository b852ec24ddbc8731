//! Passes the deadline to a child process, and kills a child that does not stop at it.
//!
//! The child reads the deadline from an environment variable. It does not start work that needs
//! more time. A stuck child is killed at the cancellation, so that the read of its output ends and
//! the thread is free.
//!
//! ```text
//! cargo run -p timeout-examples --example child
//! ```

use std::env;
use std::error::Error;
use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use timeout_runtime::{Deadline, timeout, workers};

const DEADLINE: &str = "EXAMPLE_DEADLINE";

/// Runs a child of this kind, and returns its output.
#[timeout(name = "output_of", limit = limit)]
fn output_of(kind: &'static str, limit: Duration) -> io::Result<String> {
    let mut child = Command::new(env::current_exe()?)
        .arg(kind)
        .env(DEADLINE, cancel_token.deadline().to_env())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take();
    let child = Arc::new(Mutex::new(child));
    let stuck = Arc::clone(&child);
    // An error of `kill` means that the child has already exited.
    let stop = move || lock(&stuck).kill();
    cancel_token.interrupt_with(stop, || {
        let mut printed = String::new();
        if let Some(mut stdout) = stdout {
            stdout.read_to_string(&mut printed)?;
        }
        let status = wait(&child)?;
        println!("{kind}: the child exited by itself: {}", status.success());
        Ok(printed.trim_end().to_owned())
    })?
}

/// Waits until the child has exited. Releases the lock in between, so that the child can be killed.
fn wait(child: &Mutex<Child>) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = lock(child).try_wait()? {
            return Ok(status);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

fn lock(child: &Mutex<Child>) -> MutexGuard<'_, Child> {
    child.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The main function of a child.
fn be_child(kind: &str) -> Result<(), Box<dyn Error>> {
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

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(kind) = env::args().nth(1) {
        return be_child(&kind);
    }
    for (kind, limit) in [("quick", 60_000), ("careful", 60_000), ("stuck", 2_000)] {
        let output = output_of(kind, Duration::from_millis(limit));
        let running = workers::drain(Duration::from_secs(60));
        match output {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => println!("{kind}: timed out"),
            output => println!("{kind}: {}", output?),
        }
        assert_eq!(running, 0, "an operation is still running");
    }
    Ok(())
}
