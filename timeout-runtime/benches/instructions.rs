//! Counts the instructions of calls and token operations with valgrind.
//!
//! For one build the counts are the same on every run, also on a busy machine. A count that differs
//! from the expected count below by more than a tenth is an error: find the reason for a longer
//! path, and update the expected count of a shorter one. `benches/README.md` describes how to run
//! it.

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::process::{Command, ExitCode, Stdio};
use std::task::{Context, Poll};
use std::{env, io};

use timeout_runtime::integrations::metrics::record_events;
use timeout_runtime::{CancelToken, TimeoutError, add_listener, timeout, workers};

/// A code path, and its expected number of instructions.
struct Path {
    name: &'static str,
    expected: u64,
    /// Runs the path so many times.
    run: fn(u64),
}

const PATHS: [Path; 13] = [
    Path {
        name: "token read",
        expected: 11,
        run: |times| {
            let token = CancelToken::new();
            (0..times).for_each(|_| _ = black_box(&token).is_cancelled());
        },
    },
    Path {
        name: "token made and dropped",
        expected: 266,
        run: |times| (0..times).for_each(|_| drop(black_box(CancelToken::new()))),
    },
    Path {
        name: "child made and dropped",
        expected: 1000,
        run: |times| {
            let token = CancelToken::new();
            (0..times).for_each(|_| drop(black_box(token.child())));
        },
    },
    Path {
        name: "async call, ready",
        expected: 455,
        run: |times| {
            block_on(async move {
                for x in 0..times {
                    _ = black_box(ready(x).await);
                }
            });
        },
    },
    Path {
        name: "async call, ready, near limit",
        expected: 465,
        run: |times| {
            block_on(async move {
                for x in 0..times {
                    _ = black_box(near(x).await);
                }
            });
        },
    },
    Path {
        name: "async call, ready, with a listener",
        expected: 1376,
        run: |times| {
            let _listener = add_listener(|event| _ = black_box(event));
            block_on(async move {
                for x in 0..times {
                    _ = black_box(ready(x).await);
                }
            });
        },
    },
    Path {
        name: "async call, ready, token checked",
        expected: 1371,
        run: |times| {
            block_on(async move {
                for x in 0..times {
                    _ = black_box(checked(x).await);
                }
            });
        },
    },
    Path {
        name: "async call inside a call, ready",
        expected: 1500,
        run: |times| {
            block_on(async move {
                for x in 0..times {
                    _ = black_box(nested(x).await);
                }
            });
        },
    },
    Path {
        name: "async call, pending once",
        expected: 1146,
        run: |times| {
            block_on(async move {
                for x in 0..times {
                    _ = black_box(pending_once(x).await);
                }
            });
        },
    },
    Path {
        name: "async call, one more poll",
        expected: 88,
        run: |times| {
            block_on(async move {
                _ = black_box(pending(times).await);
            });
        },
    },
    Path {
        name: "sync call, inline",
        expected: 463,
        run: |times| (0..times).for_each(|x| _ = black_box(inline(x))),
    },
    Path {
        name: "metrics, 1 abandoned",
        expected: 6304,
        run: |times| dropped_calls(times, 1),
    },
    Path {
        name: "metrics, 10 000 abandoned",
        expected: 6568,
        run: |times| dropped_calls(times, 10_000),
    },
];

#[timeout(name = "ready", secs = 5)]
async fn ready(x: u64) -> Result<u64, TimeoutError> {
    Ok(black_box(x))
}

#[timeout(name = "near", ms = 50)]
async fn near(x: u64) -> Result<u64, TimeoutError> {
    Ok(black_box(x))
}

#[timeout(name = "checked", secs = 5)]
async fn checked(x: u64) -> Result<u64, TimeoutError> {
    cancel_token.check()?;
    Ok(black_box(x))
}

#[timeout(name = "nested", secs = 5)]
async fn nested(x: u64) -> Result<u64, TimeoutError> {
    ready(x).await
}

#[timeout(name = "pending_once", secs = 5)]
async fn pending_once(x: u64) -> Result<u64, TimeoutError> {
    Pends(1).await;
    Ok(black_box(x))
}

#[timeout(name = "pending", secs = 500)]
async fn pending(times: u64) -> Result<(), TimeoutError> {
    Pends(times).await;
    Ok(())
}

#[timeout(name = "inline", secs = 5, run = "inline")]
fn inline(x: u64) -> Result<u64, TimeoutError> {
    Ok(black_box(x))
}

/// A future that is pending so many times, and wakes no task.
struct Pends(u64);

impl Future for Pends {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        Poll::Pending
    }
}

/// Drops `times` calls that metrics count, while `abandoned` operations are abandoned.
///
/// The cost of a call must not depend on the number of abandoned operations.
fn dropped_calls(times: u64, abandoned: usize) {
    let _metrics = record_events();
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime without drivers starts");
    runtime.block_on(async {
        for _ in 0..abandoned {
            poll_and_drop(never_ends(), true).await;
        }
        for _ in 0..times {
            poll_and_drop(pending(1), false).await;
        }
    });
    assert_eq!(workers::abandoned().len(), abandoned);
}

async fn poll_and_drop<T>(call: impl Future<Output = T>, yield_once: bool) {
    let mut call = std::pin::pin!(call);
    let mut context = Context::from_waker(std::task::Waker::noop());
    assert!(call.as_mut().poll(&mut context).is_pending());
    if yield_once {
        tokio::task::yield_now().await;
    }
}

#[timeout(name = "never_ends", secs = 500, run = "task", max_abandoned = usize::MAX)]
async fn never_ends() -> Result<(), TimeoutError> {
    std::future::pending().await
}

/// Polls until the end, with nothing of an executor besides.
fn block_on(future: impl Future<Output = ()>) {
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(std::task::Waker::noop());
    while future.as_mut().poll(&mut context).is_pending() {}
}

/// Returns the instructions of a process that runs `path` so many times.
fn count(path: &Path, times: u64) -> io::Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(env::current_exe()?)
        .args(["--run", path.name, &times.to_string()])
        .stdout(Stdio::null())
        .output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split_once("Collected :"));
    let number = collected.and_then(|(_, number)| number.trim().parse().ok());
    number.ok_or_else(|| io::Error::other(format!("valgrind printed no count:\n{text}")))
}

fn check(path: &Path) -> io::Result<bool> {
    // Enough to make the rest of the process and the timer's thread negligible.
    const TIMES: u64 = 20_000;
    let found = (count(path, 2 * TIMES)? - count(path, TIMES)?) / TIMES;
    let expected = path.expected;
    let is_near = found.abs_diff(expected) * 10 <= expected;
    let mark = if is_near { "" } else { "  not as expected" };
    println!("{:26} {found:>6}  expected {expected:>6}{mark}", path.name);
    Ok(is_near)
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--run", name, times] => {
            let path = PATHS.iter().find(|path| path.name == name);
            if let (Some(path), Ok(times)) = (path, times.parse()) {
                (path.run)(times);
            }
            ExitCode::SUCCESS
        }
        // Run by `cargo test`.
        [] => ExitCode::SUCCESS,
        _ => {
            let all: io::Result<Vec<bool>> = PATHS.iter().map(check).collect();
            match all {
                Ok(all) if all.iter().all(|near| *near) => ExitCode::SUCCESS,
                Ok(_) => ExitCode::FAILURE,
                Err(error) => {
                    eprintln!("{error}; is valgrind installed?");
                    ExitCode::FAILURE
                }
            }
        }
    }
}
