//! How many instructions a call takes, counted by valgrind: the same number on every run of one build, whatever else the machine does.
//!
//! `benches/README.md` says how to run it. A path that has become a tenth longer than noted here, or shorter, is an error: a longer one needs a
//! reason, a shorter one a new note.

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::process::{Command, ExitCode, Stdio};
use std::task::{Context, Poll};
use std::{env, io};

use timeout_runtime::integrations::metrics::record_endings;
use timeout_runtime::{CancelToken, TimeoutError, timeout, workers};

/// What may be taken so many times, and how many instructions each time took when somebody looked last.
struct Path {
    name: &'static str,
    noted: u64,
    take: fn(u64),
}

const PATHS: [Path; 9] = [
    Path {
        name: "token read",
        noted: 11,
        take: |times| {
            let token = CancelToken::new();
            (0..times).for_each(|_| _ = black_box(&token).is_cancelled());
        },
    },
    Path {
        name: "token made and dropped",
        noted: 285,
        take: |times| (0..times).for_each(|_| drop(black_box(CancelToken::new()))),
    },
    Path {
        name: "child made and dropped",
        noted: 948,
        take: |times| {
            let token = CancelToken::new();
            (0..times).for_each(|_| drop(black_box(token.child())));
        },
    },
    Path {
        name: "async call, ready",
        noted: 381,
        take: |times| {
            block_on(async move {
                for x in 0..times {
                    _ = black_box(ready(x).await);
                }
            });
        },
    },
    Path {
        name: "async call, pending once",
        noted: 975,
        take: |times| {
            block_on(async move {
                for x in 0..times {
                    _ = black_box(pending_once(x).await);
                }
            });
        },
    },
    Path {
        name: "async call, one more poll",
        noted: 84,
        take: |times| {
            block_on(async move {
                _ = black_box(pending(times).await);
            });
        },
    },
    Path {
        name: "sync call, inline",
        noted: 460,
        take: |times| (0..times).for_each(|x| _ = black_box(inline(x))),
    },
    Path {
        name: "metrics, 1 abandoned",
        noted: 7150,
        take: |times| dropped_calls(times, 1),
    },
    Path {
        name: "metrics, 10 000 abandoned",
        noted: 7150,
        take: |times| dropped_calls(times, 10_000),
    },
];

#[timeout(name = "ready", secs = 5)]
async fn ready(x: u64) -> Result<u64, TimeoutError> {
    Ok(black_box(x))
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

/// Pending so many times.
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

/// Drops calls that are counted by metrics, while so many operations are abandoned: a call costs the
/// same, however many.
fn dropped_calls(times: u64, abandoned: usize) {
    let _metrics = record_endings();
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime without drivers starts");
    runtime.block_on(async {
        for _ in 0..abandoned {
            poll_and_drop(left_running(), true).await;
        }
        for _ in 0..times {
            poll_and_drop(pending(1), false).await;
        }
    });
    assert_eq!(workers::abandoned().len(), abandoned);
}

async fn poll_and_drop<T>(call: impl Future<Output = T>, let_it_start: bool) {
    let mut call = std::pin::pin!(call);
    let mut context = Context::from_waker(std::task::Waker::noop());
    assert!(call.as_mut().poll(&mut context).is_pending());
    if let_it_start {
        tokio::task::yield_now().await;
    }
}

#[timeout(name = "left_running", secs = 500, run = "task", max_abandoned = usize::MAX)]
async fn left_running() -> Result<(), TimeoutError> {
    std::future::pending().await
}

/// Polls until the end, with nothing of an executor besides.
fn block_on(future: impl Future<Output = ()>) {
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(std::task::Waker::noop());
    while future.as_mut().poll(&mut context).is_pending() {}
}

/// The instructions of a process of this program that takes `path` so many times.
fn count(path: &Path, times: u64) -> io::Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(env::current_exe()?)
        .args(["--take", path.name, &times.to_string()])
        .stdout(Stdio::null())
        .output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let collected = text.lines().find_map(|line| line.split_once("Collected :"));
    let number = collected.and_then(|(_, number)| number.trim().parse().ok());
    number.ok_or_else(|| io::Error::other(format!("valgrind counted nothing:\n{text}")))
}

fn check(path: &Path) -> io::Result<bool> {
    // So many that what a process does besides, and the timer's thread, do not show.
    const TIMES: u64 = 20_000;
    let found = (count(path, 2 * TIMES)? - count(path, TIMES)?) / TIMES;
    let noted = path.noted;
    let is_near = found.abs_diff(noted) * 10 <= noted;
    let mark = if is_near { "" } else { "  not as noted" };
    println!("{:26} {found:>6}  noted {noted:>6}{mark}", path.name);
    Ok(is_near)
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--take", name, times] => {
            let path = PATHS.iter().find(|path| path.name == name);
            if let (Some(path), Ok(times)) = (path, times.parse()) {
                (path.take)(times);
            }
            ExitCode::SUCCESS
        }
        // As `cargo test` runs it.
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
