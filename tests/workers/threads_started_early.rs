//! `workers::start` starts all threads early, from a thread of the user's choice.

use crate::own_process::in_own_process;
use crate::support;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use support::{EVERY_WAY, eventually, limit};
use timeout_runtime::TimeoutError;
use timeout_runtime::workers::{self, Settings};

/// The names of the threads that ran the hook.
#[derive(Clone, Default)]
struct Names(Arc<Mutex<Vec<String>>>);

impl Names {
    fn add_current(&self) {
        let name = thread::current().name().unwrap_or("unnamed").to_owned();
        self.0.lock().unwrap().push(name);
    }

    fn sorted(&self) -> Vec<String> {
        let mut names = self.0.lock().unwrap().clone();
        names.sort_unstable();
        names
    }
}

/// Threads used to inherit the priority and the signal mask of the first caller.
// Fails if a thread does not run the hook, or if `start` returns before its workers are idle.
#[test]
fn threads_started_early_run_the_hook_once_and_serve_all_calls() {
    in_own_process(|| {
        const ALL: [&str; 5] = [
            "timeout-1",
            "timeout-2",
            "timeout-3",
            "timeout-deputy",
            "timeout-timer",
        ];

        let names = Names::default();
        let hook = names.clone();
        Settings {
            keep_alive: Duration::MAX,
            ..Settings::current()
        }
        .apply();
        workers::on_thread_start(move || hook.add_current());
        assert_eq!(workers::start(3).unwrap(), 3);
        assert_eq!(workers::stats().idle, 3);
        eventually("all threads have started", || names.sorted() == ALL);

        for way in EVERY_WAY {
            let outcome = way.run(&limit("started_early::call", 60_000), |_| {
                Ok::<_, TimeoutError>(7)
            });
            assert_eq!(outcome.success(), Some(7), "{way:?}");
        }
        assert_eq!(workers::start(2).unwrap(), 3, "more threads than requested");
        assert_eq!(names.sorted(), ALL, "no other thread was needed");
    });
}
