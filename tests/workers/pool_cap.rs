//! A call that finds every worker busy waits for one until its deadline, and is then withdrawn.

use crate::own_process::in_own_process;
use crate::{panics, support};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use support::{
    Drops, Gate, LONG, OnDrop, Way, before_it_opens, block_on, eventually, limit, occupy_worker,
    poll_once, record,
};
use timeout_runtime::workers::{self, Settings};
use timeout_runtime::{CallStatus, CancelToken, Cause, EventKind, Outcome, TimeoutError, timeout};

/// Keeps every worker busy until the gate opens.
fn occupy() -> Gate {
    Settings {
        cap: 2,
        ..Settings::current()
    }
    .apply();
    let release = Gate::new();
    for _ in 0..2 {
        occupy_worker("pool_cap::occupied", &release);
    }
    release
}

fn withdrawn_at_its_end(way: Way) {
    let recorder = record("pool_cap::withdrawn");
    let (drops, ran) = (Drops::default(), Gate::new());
    let (value, runs) = (drops.value(), ran.clone());
    let timeout = limit("pool_cap::withdrawn", 30).with_grace(Duration::from_secs(60));
    let outcome = way.run(&timeout, move |_| {
        runs.open();
        Ok::<_, TimeoutError>(value)
    });
    let Outcome::NotStarted(error) = outcome else {
        panic!("{way:?}: {outcome:?}");
    };
    assert_eq!(error.cause(), Cause::NoWorker, "{way:?}");
    assert!(error.elapsed() >= Duration::from_millis(30), "{way:?}");
    assert!(!ran.is_open(), "{way:?}");
    // The caller does not wait for destructors.
    eventually("the arguments are dropped", || drops.count() == 1);
    assert_eq!(
        recorder.kinds(),
        [EventKind::NotStarted(Cause::NoWorker)],
        "{way:?}"
    );
    assert_eq!(workers::stats().queued, 0, "{way:?}");
}

#[timeout(name = "pool_cap::given", secs = 600)]
#[allow(clippy::needless_pass_by_value)] // Arguments of an operation on a worker are owned.
fn given(cancel_token: CancelToken) -> Result<u32, TimeoutError> {
    cancel_token.check().map(|()| 7)
}

fn withdrawn_by_upstream() {
    let request = CancelToken::new();
    let caller = {
        let request = request.clone();
        thread::spawn(move || given(request))
    };
    eventually("the call is queued", || workers::stats().queued == 1);
    request.cancel();
    let error = caller.join().unwrap().unwrap_err();
    assert!(
        error.is_cancelled() && error.status() == CallStatus::NotStarted,
        "{error:?}"
    );
}

/// A queued operation's arguments that panic when dropped used to change the caller's outcome.
fn withdrawn_with_a_panic(way: Way) {
    panics::record_panics();
    let argument = OnDrop(|| panic!("wanted: a destructor"));
    let outcome = way.run(&limit("pool_cap::panics", 30), move |_| {
        std::mem::forget(argument);
        Ok::<_, TimeoutError>(7)
    });
    assert!(
        matches!(outcome, Outcome::NotStarted(_)),
        "{way:?}: {outcome:?}"
    );
    assert_eq!(workers::stats().queued, 0, "{way:?}");
}

/// The caller used to drop the arguments of a call that found no worker.
fn withdrawn_without_waiting_for_destructors(way: Way) {
    let (release, dropped) = (Gate::new(), Gate::new());
    let (held, is_dropped) = (release.clone(), dropped.clone());
    let argument = OnDrop(move || {
        held.wait();
        is_dropped.open();
    });
    let outcome = before_it_opens(&release, move || {
        way.run(&limit("pool_cap::destructor", 30), move |_| {
            let _argument = argument;
            Ok::<_, TimeoutError>(7)
        })
    });
    assert!(
        matches!(outcome, Outcome::NotStarted(_)),
        "{way:?}: {outcome:?}"
    );
    dropped.wait();
}

fn dropped_while_queued() {
    let recorder = record("pool_cap::dropped");
    let drops = Drops::default();
    let value = drops.value();
    let timeout = limit("pool_cap::dropped", LONG);
    let mut call = Way::AsyncWorker.start(&timeout, |_| async { Ok::<_, TimeoutError>(value) });
    assert!(poll_once(&mut call, &Gate::new()).is_pending());
    assert_eq!(workers::stats().queued, 1);
    drop(call);
    assert_eq!(workers::stats().queued, 0);
    eventually("the arguments are dropped", || drops.count() == 1);
    assert_eq!(recorder.kinds(), [EventKind::Dropped]);
}

#[test]
fn at_the_cap_a_call_waits_for_a_worker_until_its_deadline() {
    in_own_process(|| {
        let release = occupy();
        let stats = workers::stats();
        assert_eq!((stats.live, stats.busy, stats.idle), (2, 2, 0));
        for way in [Way::SyncWorker, Way::AsyncWorker] {
            withdrawn_at_its_end(way);
            withdrawn_with_a_panic(way);
            withdrawn_without_waiting_for_destructors(way);
        }
        withdrawn_by_upstream();
        dropped_while_queued();
        // Calls that still wait when a worker becomes free are run.
        let ran = Arc::new(AtomicUsize::new(0));
        let waiting: Vec<_> = (0..4)
            .map(|place| {
                let ran = ran.clone();
                let call = thread::spawn(move || {
                    block_on(limit("pool_cap::waits", LONG).on_worker().outcome_async(
                        move |_| async move {
                            ran.fetch_add(1, Ordering::SeqCst);
                            Ok::<_, TimeoutError>(place)
                        },
                    ))
                });
                eventually("the call is queued", || {
                    workers::stats().queued == place + 1
                });
                call
            })
            .collect();
        assert_eq!(ran.load(Ordering::SeqCst), 0);
        release.open();
        for (place, call) in waiting.into_iter().enumerate() {
            assert_eq!(call.join().unwrap().success(), Some(place));
        }
        let stats = workers::stats();
        assert_eq!((stats.live, stats.queued), (2, 0));
    });
}
