//! A program that ends by `HOW` while operations are blocked or abandoned: `exits HOW OPERATIONS`.

use std::cell::RefCell;
use std::future::pending;
use std::io::Write;
use std::process::{ExitCode, exit};
use std::time::Duration;

use timeout_runtime::{CallStatus, Outcome, Timeout, TimeoutError};
use tokio::runtime::Builder;

/// Writes when its thread ends; it must do no harm if the thread is cut off.
struct Noisy(Vec<u8>);

impl Drop for Noisy {
    fn drop(&mut self) {
        self.0.fill(0);
    }
}

thread_local! {
    static NOISY: RefCell<Option<Noisy>> = const { RefCell::new(None) };
}

fn limit(ms: u64) -> Timeout {
    Timeout::new("exits", Duration::from_millis(ms)).expect("a limit")
}

fn block_for_an_hour() {
    std::thread::sleep(Duration::from_secs(3600));
}

/// The result of an operation that runs `work`.
#[allow(clippy::unnecessary_wraps)] // An operation returns a `Result`.
fn run_as_result(work: impl FnOnce()) -> Result<(), TimeoutError> {
    work();
    Ok(())
}

fn write_without_end() -> ! {
    NOISY.set(Some(Noisy(vec![1; 4096])));
    loop {
        if std::io::stdout().write_all(b"still here\n").is_err() {
            block_for_an_hour();
        }
    }
}

fn expect_timeout<T>(outcome: &Outcome<T, TimeoutError>) {
    if outcome.status() == CallStatus::Ok || outcome.timeout_error().is_none() {
        exit(70);
    }
    eprintln!("timed out");
}

/// Makes calls whose operations are still running, or have ended.
fn make_calls(operations: &str) {
    match operations {
        "blocked" => expect_timeout(&limit(20).outcome(|_| run_as_result(block_for_an_hour))),
        "writing" => expect_timeout(&limit(20).outcome(|_| run_as_result(|| write_without_end()))),
        "ended" => {
            // Each of the two calls sets a timer ten minutes ahead.
            let sync = limit(600_000).outcome(|_| Ok::<_, TimeoutError>(()));
            let polled = Builder::new_current_thread().build().expect("a runtime");
            let polled = polled.block_on(limit(600_000).outcome_async(|_| async {
                tokio::task::yield_now().await;
                Ok::<_, TimeoutError>(())
            }));
            if sync.status() != CallStatus::Ok || polled.status() != CallStatus::Ok {
                exit(70);
            }
        }
        "inside-tokio" => inside_tokio(),
        _ => exit(64),
    }
}

#[tokio::main(worker_threads = 2)]
async fn inside_tokio() {
    expect_timeout(&limit(20).outcome(|_| run_as_result(block_for_an_hour)));
    let on_worker = limit(20)
        .on_worker()
        .outcome_async(|_| async { run_as_result(block_for_an_hour) });
    expect_timeout(&on_worker.await);
    let task = limit(20)
        .cancel_on_timeout(false)
        .as_task()
        .outcome_async(|_| pending::<Result<(), TimeoutError>>());
    expect_timeout(&task.await);
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(how), Some(operations)) = (arguments.next(), arguments.next()) else {
        return ExitCode::from(64);
    };
    make_calls(&operations);
    match how.as_str() {
        "return" => ExitCode::SUCCESS,
        "exit" => exit(3),
        "panic" => panic!("a panic in main"),
        _ => ExitCode::from(64),
    }
}
