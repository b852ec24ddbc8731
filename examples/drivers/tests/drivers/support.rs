//! The scenarios that each recipe is tested in.

use std::future::Future;
use std::thread;
use std::time::{Duration, Instant};

use timeout_driver_examples::Error;
use timeout_runtime::{CallContext, CancelToken, Deadline, TimeoutError, workers};
use tokio::runtime::Runtime;

/// A limit that does not pass during a test.
pub(crate) const LONG: Duration = Duration::from_secs(600);

/// How long a test waits for what should happen in milliseconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often a connection is used in turn with calls that are interrupted.
const CALLS: u32 = 300;

/// Waits until `condition` holds.
#[track_caller]
pub(crate) fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "not in {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// The error that a cancelled call ends with.
#[track_caller]
fn timeout_error<T>(result: Result<T, Error>) -> TimeoutError {
    match result {
        Ok(_) => panic!("the call ends with a value"),
        Err(Error::Timeout(error)) => error,
        Err(error) => panic!("the call ends with another error: {error:?}"),
    }
}

/// Makes a call that never ends, and asserts that it ends at its limit, and that the server is then
/// idle. Then the same with a deadline of the enclosing call.
#[track_caller]
pub(crate) fn ends_at_its_limit<T>(
    call: impl Fn(Duration) -> Result<T, Error> + Sync,
    mut is_busy: impl FnMut() -> bool,
) {
    let own = |limit| assert!(timeout_error(call(limit)).is_timed_out());
    ends_in_time(own, &mut is_busy);
    let inherited = |limit| {
        let context = CallContext::detached().with_deadline(Deadline::after(limit));
        let error = timeout_error(context.run(|| call(LONG)));
        assert!(error.is_deadline_exceeded());
    };
    ends_in_time(inherited, &mut is_busy);
}

/// A limit that passes before the server is busy proves nothing, so it is made longer.
#[track_caller]
fn ends_in_time(call: impl Fn(Duration) + Sync, mut is_busy: impl FnMut() -> bool) {
    let mut limit = Duration::from_millis(100);
    loop {
        let was_busy = thread::scope(|scope| {
            let caller = scope.spawn(|| call(limit));
            let mut was_busy = false;
            while !caller.is_finished() {
                was_busy |= is_busy();
                thread::sleep(Duration::from_millis(2));
            }
            caller.join().unwrap();
            was_busy
        });
        eventually("the server is idle", || !is_busy());
        if was_busy {
            return;
        }
        limit *= 2;
        assert!(limit < PATIENCE, "the server is never busy");
    }
}

/// Makes a call that never ends and has a long limit, cancels its token, and asserts that it ends,
/// and that the server is then idle.
#[track_caller]
pub(crate) fn ends_at_a_cancellation<T>(
    call: impl Fn(Duration) -> Result<T, Error> + Sync,
    mut is_busy: impl FnMut() -> bool,
) {
    let token = CancelToken::new();
    let context = CallContext::detached().with_token(&token);
    thread::scope(|scope| {
        // Cancels the token also if an assertion fails, so that the scope ends.
        let _guard = token.drop_guard();
        let caller = scope.spawn(|| timeout_error(context.run(|| call(LONG))));
        eventually("the server is busy", &mut is_busy);
        token.cancel();
        eventually("the server is idle", || !is_busy());
        assert!(caller.join().unwrap().is_cancelled());
    });
}

/// Drops the future of a call that never ends, and asserts that the server is then idle.
#[track_caller]
pub(crate) fn ends_with_its_future<T: Send + 'static>(
    runtime: &Runtime,
    call: impl Future<Output = T> + Send + 'static,
    mut is_busy: impl FnMut() -> bool,
) {
    let call = runtime.spawn(call);
    eventually("the server is busy", &mut is_busy);
    call.abort();
    eventually("the server is idle", || !is_busy());
}

/// Makes calls whose limits are about as long as their work. Each is followed by `next`, which must
/// work: an interruption that comes late must not end it.
#[track_caller]
pub(crate) fn interrupts_nothing_else(
    mut call: impl FnMut(Duration) -> Result<i64, Error>,
    mut next: impl FnMut(),
) {
    let mut interrupted = 0;
    for number in 0..CALLS {
        // From far too short to far too long, and now and then without end.
        let limit = match number % 10 {
            0 => LONG,
            _ => Duration::from_micros(u64::from(20 * number)),
        };
        match call(limit) {
            Ok(value) => assert_eq!(value, 42),
            result => {
                assert_ne!(limit, LONG, "{result:?}");
                timeout_error(result);
                interrupted += 1;
            }
        }
        next();
    }
    assert!(interrupted > 0, "no call was interrupted");
}

/// Waits until no operation of this name is running that its caller has left.
#[track_caller]
pub(crate) fn leaves_nothing_running(name: &str) {
    let running = || {
        workers::abandoned()
            .iter()
            .any(|operation| operation.name == name)
    };
    eventually("the operation has ended", || !running());
}
