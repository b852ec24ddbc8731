//! A program that forks; its child makes calls: `forks WHEN ROUNDS`.

#[cfg(unix)]
fn main() -> std::process::ExitCode {
    forks::main()
}

#[cfg(not(unix))]
fn main() {}

#[cfg(unix)]
mod forks {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, ExitCode, exit};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;
    use std::thread;
    use std::time::{Duration, Instant};

    use fork::{Fork, fork, waitpid_nohang};
    use timeout_runtime::{Cause, Outcome, Timeout, TimeoutError};
    use tokio::runtime::Builder;

    const LIMIT: Duration = Duration::from_secs(600);
    /// An undelayed call takes less time than this on any machine.
    const AT_ONCE: Duration = Duration::from_secs(15);

    fn calls() -> Timeout {
        Timeout::new("forks", LIMIT).expect("a limit")
    }

    #[allow(clippy::unnecessary_wraps)] // An operation returns a `Result`.
    fn seven() -> Result<u32, TimeoutError> {
        thread::sleep(Duration::from_millis(10));
        Ok(7)
    }

    fn succeeds(outcome: &Outcome<u32, TimeoutError>) -> bool {
        matches!(outcome, Outcome::Success(7))
    }

    fn refused(outcome: &Outcome<u32, TimeoutError>) -> bool {
        matches!(outcome, Outcome::NotStarted(error) if error.cause() == Cause::NoWorker)
    }

    /// Makes the child's calls and returns its exit code.
    fn live(worker_is_expected: bool, mut async_first: bool) -> i32 {
        let start = Instant::now();
        let is_right = if worker_is_expected {
            succeeds
        } else {
            refused
        };
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        for _ in 0..2 {
            let call = calls().on_worker().outcome_async(|_| async { seven() });
            if async_first && !is_right(&runtime.block_on(call)) {
                return 9;
            }
            if !is_right(&calls().outcome(|_| seven())) {
                return 10;
            }
            async_first = true;
        }
        if !succeeds(&calls().inline().outcome(|_| seven())) {
            return 11;
        }
        let (called, is_called) = mpsc::channel();
        let short = Timeout::new("forks", Duration::from_millis(20)).expect("a limit");
        let expires = short.inline().outcome(move |token| {
            token.on_cancel(move || called.send(()).unwrap()).forget();
            token.sleep(LIMIT).map(|()| 7)
        });
        if !matches!(expires, Outcome::TimedOut(_)) {
            return 12;
        }
        if is_called.recv_timeout(AT_ONCE).is_err() {
            return 13;
        }
        if start.elapsed() > AT_ONCE { 14 } else { 0 }
    }

    /// Ends a child without the exit functions of the standard library: they take a lock that a
    /// thread of the parent may have held at the fork.
    fn leave(code: i32) -> ! {
        let exit = ["-c".to_owned(), format!("exit {code}")];
        let error = Command::new("sh").args(exit).exec();
        panic!("{error}")
    }

    /// Forks, and returns the exit status of the child.
    fn child(worker_is_expected: bool, async_first: bool) -> Option<i32> {
        let child = match fork().expect("a process") {
            Fork::Child => leave(live(worker_is_expected, async_first)),
            Fork::Parent(child) => child,
        };
        let start = Instant::now();
        while start.elapsed() < 2 * AT_ONCE {
            if let Some(status) = waitpid_nohang(child).expect("a child of ours") {
                return Some(status);
            }
            thread::sleep(Duration::from_millis(1));
        }
        // A blocked child would keep the standard streams that it shares with this process.
        let kill = ["-KILL".to_owned(), child.to_string()];
        Command::new("kill").args(kill).status().ok();
        None
    }

    /// Makes calls in other threads during the forks.
    fn busy(stop: &'static AtomicBool) {
        for _ in 0..4 {
            thread::spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    // A new thread for each call: it has no worker of its own yet, so it takes the
                    // pool's lock.
                    let calls = || calls().outcome(|_| Ok::<_, TimeoutError>(7));
                    let outcome = thread::spawn(calls).join().expect("an outcome");
                    if !succeeds(&outcome) {
                        exit(66);
                    }
                }
            });
        }
        thread::spawn(|| {
            calls().outcome(|_| {
                while !stop.load(Ordering::Relaxed) {
                    thread::sleep(Duration::from_millis(1));
                }
                Ok::<_, TimeoutError>(7)
            })
        });
    }

    pub(super) fn main() -> ExitCode {
        static STOP: AtomicBool = AtomicBool::new(false);

        let mut arguments = std::env::args().skip(1);
        let (Some(when), Some(rounds)) = (arguments.next(), arguments.next()) else {
            return ExitCode::from(64);
        };
        let is_first = when == "first";
        if !is_first {
            busy(&STOP);
        }
        for round in 0..rounds.parse().expect("a number") {
            // In every second round the forking thread has used a worker before.
            if !is_first && round % 2 == 0 && !succeeds(&calls().outcome(|_| seven())) {
                return ExitCode::from(65);
            }
            match child(is_first, round % 4 == 0) {
                Some(0) => {}
                Some(status) => {
                    eprintln!("round {round}: status {status:#x}");
                    return ExitCode::FAILURE;
                }
                None => {
                    eprintln!("round {round}: the child did not end");
                    return ExitCode::FAILURE;
                }
            }
        }
        STOP.store(true, Ordering::Relaxed);
        // Calls of the parent still work.
        if succeeds(&calls().outcome(|_| seven())) {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(65)
        }
    }
}
