//! Late results: each one is reported once and dropped once, and costs no worker.

use crate::own_process::in_own_process;
use crate::{concurrent, panics, support};
use std::collections::HashSet;
use std::panic::panic_any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use support::short;
use support::{ABANDONING, Drops, Gate, Way, assert_timed_out, eventually, limit, record, runtime};
use timeout_runtime::workers::Settings;
use timeout_runtime::{CallStatus, EventKind, Failure, TimeoutError, WorkerName, workers};

/// Records expected panics, and keeps all workers during the test.
fn prepare() {
    panics::record_panics();
    Settings {
        keep_alive: Duration::from_secs(600),
        ..Settings::current()
    }
    .apply();
}

/// A value that records the thread on which it is dropped.
#[derive(Debug)]
struct Resource {
    dropped_on: Arc<Mutex<Vec<Option<String>>>>,
    panics: bool,
}

impl Drop for Resource {
    fn drop(&mut self) {
        let thread = thread::current().name().map(str::to_owned);
        self.dropped_on.lock().unwrap().push(thread);
        assert!(!self.panics, "wanted: a destructor");
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Late {
    Value,
    ValueWhoseDropPanics,
    Error,
    Panic,
    Payload,
}

impl Late {
    fn happen(self, resource: Resource) -> Result<Resource, Resource> {
        match self {
            Self::Value | Self::ValueWhoseDropPanics => Ok(resource),
            Self::Error => Err(resource),
            Self::Panic => panic!("wanted: late"),
            Self::Payload => panic_any(resource),
        }
    }

    fn is_reported_as(self, event: &EventKind<'_>) -> bool {
        match event {
            EventKind::AbandonedWorkerSucceeded => {
                matches!(self, Self::Value | Self::ValueWhoseDropPanics)
            }
            EventKind::AbandonedWorkerFailed(Failure::Error(text)) => {
                self == Self::Error && text.contains("Resource")
            }
            EventKind::AbandonedWorkerFailed(Failure::Panic(text)) => match self {
                Self::Panic => text == "wanted: late",
                _ => self == Self::Payload,
            },
            _ => false,
        }
    }
}

const EVERY_LATE: [Late; 5] = [
    Late::Value,
    Late::ValueWhoseDropPanics,
    Late::Error,
    Late::Panic,
    Late::Payload,
];

/// Makes a call whose operation ends late. Returns its worker, if it had one.
fn end_late(way: Way, late: Late) -> Option<WorkerName> {
    let what = format!("{way:?}, {late:?}");
    let name: &str = Box::leak(format!("late_results::{what}").into_boxed_str());
    let recorder = record(name);
    let dropped_on = Arc::default();
    let resource = Resource {
        dropped_on: Arc::clone(&dropped_on),
        panics: late == Late::ValueWhoseDropPanics,
    };
    let release = Gate::new();
    let body = release.clone();
    let outcome = way.run(&limit(name, short()), move |_| {
        body.wait();
        late.happen(resource)
    });
    assert_timed_out(&what, &outcome);
    assert_eq!(*dropped_on.lock().unwrap(), [], "{what}");

    release.open();
    let kinds = recorder.wait_for(2);
    assert_eq!(kinds[0], EventKind::TimedOut, "{what}");
    assert!(late.is_reported_as(&kinds[1]), "{what}: {:?}", kinds[1]);
    let events = recorder.events();
    assert_eq!(events[0].call, events[1].call, "{what}");
    let worker = events[1].worker;
    assert_eq!(worker.is_some(), way != Way::AsyncTask, "{what}");
    let dropped_on = dropped_on.lock().unwrap();
    assert_eq!(dropped_on.len(), 1, "{what}: the value is dropped once");
    if let Some(worker) = worker {
        assert_eq!(dropped_on[0], Some(worker.to_string()), "{what}");
    }
    worker
}

/// The names of all workers; each has just run a call.
fn serving_workers() -> HashSet<WorkerName> {
    let live = workers::stats().live;
    eventually("every worker is idle", || workers::stats().idle == live);
    let recorder = record("late_results::next");
    let barrier = Arc::new(Barrier::new(live));
    thread::scope(|scope| {
        for _ in 0..live {
            scope.spawn(|| {
                let barrier = Arc::clone(&barrier);
                let outcome = limit("late_results::next", 60_000).outcome(move |_| {
                    barrier.wait();
                    Ok::<_, TimeoutError>(())
                });
                assert_eq!(outcome.status(), CallStatus::Ok, "{outcome:?}");
            });
        }
    });
    let events = recorder.events();
    events.iter().filter_map(|event| event.worker).collect()
}

/// Late values, errors and panics used to be lost or reported twice, or to end their worker.
#[test]
fn a_late_result_is_reported_and_dropped_once_and_its_worker_is_reused() {
    in_own_process(|| {
        prepare();
        for way in ABANDONING {
            for late in EVERY_LATE {
                if let Some(worker) = end_late(way, late) {
                    let serving = serving_workers();
                    assert!(
                        serving.contains(&worker),
                        "{way:?}, {late:?}: {worker} of {serving:?}"
                    );
                }
            }
        }
    });
}

/// No value may be lost, or handed out twice, between "finished" and "timed out".
#[test]
fn at_the_limit_every_value_is_returned_or_dropped() {
    in_own_process(|| {
        const RUNS: usize = 10_000;

        prepare();
        let runtime = runtime();
        let (made, handed, drops) = <(Arc<AtomicUsize>, AtomicUsize, Drops)>::default();
        concurrent::run_concurrently(8, RUNS, |run| {
            let timeout = limit("late_results::edge", 2);
            let nap = Duration::from_micros(1000 + 20 * (run as u64 % 100));
            let (made, drops) = (Arc::clone(&made), drops.clone());
            let produce = move || {
                made.fetch_add(1, Ordering::SeqCst);
                drops.value()
            };
            let sync = {
                let produce = produce.clone();
                move |_| {
                    thread::sleep(nap);
                    Ok::<_, TimeoutError>(produce())
                }
            };
            let r#async = move |_| async move {
                tokio::time::sleep(nap).await;
                Ok::<_, TimeoutError>(produce())
            };
            let outcome = match run % 8 {
                0 => timeout.inline().outcome(sync),
                1 | 2 => runtime.block_on(timeout.as_task().outcome_async(r#async)),
                3 => runtime.block_on(timeout.on_worker().outcome_async(r#async)),
                4 => runtime.block_on(timeout.outcome_async(r#async)),
                _ => timeout.outcome(sync),
            };
            if let Some(value) = outcome.success() {
                handed.fetch_add(1, Ordering::SeqCst);
                std::mem::forget(value);
            }
        });
        drop(runtime);
        let made = || made.load(Ordering::SeqCst);
        let gone = || handed.load(Ordering::SeqCst) + drops.count();
        eventually("every value is accounted for", || {
            workers::stats().busy == 0 && gone() >= made()
        });
        assert_eq!(gone(), made());
        assert!(handed.into_inner() > 0 && drops.count() > 0);
    });
}
