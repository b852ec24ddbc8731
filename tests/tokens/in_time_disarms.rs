//! A call that ends in time disarms its token.

use crate::support;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use support::{
    ASYNC, EVERY_WAY, Gate, Way, assert_timed_out, limit, poll_once, short, short_limit,
    until_cancelled,
};
use timeout_runtime::{
    CallContext, CallStatus, CancelToken, Cause, Deadline, Outcome, Registration, TimeoutError,
};

/// The tokens and the context that an operation keeps from its call.
struct Kept {
    token: CancelToken,
    child: CancelToken,
    linked: CancelToken,
    context: CallContext,
    callback: Registration,
    deadline: Instant,
}

impl Kept {
    /// The tokens and the context of a call with a limit of `ms`.
    fn of(token: &CancelToken, ms: u64) -> Self {
        Self {
            token: token.clone(),
            child: token.child(),
            linked: CancelToken::linked([&CancelToken::new(), token]),
            context: CallContext::current(),
            callback: token.on_cancel(|| ()),
            deadline: Instant::now() + Duration::from_millis(ms),
        }
    }

    fn tokens(&self) -> [&CancelToken; 3] {
        [&self.token, &self.child, &self.linked]
    }

    /// Waits until the call's deadline has passed.
    fn outlive(&self) {
        thread::sleep(self.deadline.saturating_duration_since(Instant::now()));
        thread::sleep(Duration::from_millis(10));
    }
}

/// Makes one call for each way to end in time, and returns what each operation kept. Retries with
/// longer limits on a slow machine.
fn ended_in_time(way: Way, name: &'static str) -> Vec<Kept> {
    let longer = std::iter::successors(Some(short()), |ms| Some(2 * ms));
    let mut limits = longer.take_while(|ms| *ms < 120_000);
    let ended = limits.find_map(|ms| try_to_end_in_time(way, name, ms));
    ended.expect("a call of no work ends within a minute")
}

/// `None` if a call timed out.
fn try_to_end_in_time(way: Way, name: &'static str, ms: u64) -> Option<Vec<Kept>> {
    let timeout = limit(name, ms);
    let (sender, kept) = mpsc::channel();
    let send = sender.clone();
    let success = way.run(&timeout, move |token| {
        send.send(Kept::of(&token, ms)).unwrap();
        Ok::<_, TimeoutError>(())
    });
    let send = sender.clone();
    let failure = way.run(&timeout, move |token| {
        send.send(Kept::of(&token, ms)).unwrap();
        Err::<(), _>("disk full")
    });
    let panic = catch_unwind(AssertUnwindSafe(|| {
        way.run::<(), TimeoutError>(&timeout, move |token| {
            sender.send(Kept::of(&token, ms)).unwrap();
            // Without the panic hook: its printing takes part of the limit.
            std::panic::resume_unwind(Box::new("out of paper"))
        })
    }));
    let timed_out = [success.timeout_error(), failure.timeout_error()]
        .into_iter()
        .chain(panic.as_ref().ok().map(Outcome::timeout_error))
        .flatten()
        .any(TimeoutError::is_timed_out);
    if timed_out {
        return None;
    }
    assert_eq!(success.status(), CallStatus::Ok, "{way:?}: {success:?}");
    assert!(
        matches!(failure, Outcome::Failure(_)),
        "{way:?}: {failure:?}"
    );
    assert!(panic.is_err(), "{way:?}: {panic:?}");
    Some(kept.into_iter().collect())
}

#[test]
fn tokens_of_a_call_that_ended_in_time_have_no_deadline() {
    for way in EVERY_WAY {
        let kept = ended_in_time(way, "in_time_disarms::tokens");
        assert_eq!(kept.len(), 3);
        for kept in kept {
            let deadlines = kept.tokens().map(CancelToken::deadline);
            assert_eq!(deadlines, [Deadline::never(); 3], "{way:?}");
            assert_eq!(kept.token.remaining(), None, "{way:?}");
            kept.outlive();
            assert_eq!(kept.tokens().map(CancelToken::cause), [None; 3], "{way:?}");
            assert!(kept.token.check().is_ok(), "{way:?}");
            assert!(kept.callback.unregister(), "{way:?}: the callback has run");
        }
    }
}

/// A context used to keep the deadline that it saw when it was captured.
#[test]
fn contexts_of_a_call_that_ended_in_time_have_no_deadline() {
    for way in EVERY_WAY {
        for kept in ended_in_time(way, "in_time_disarms::contexts") {
            assert_eq!(
                kept.context.run(Deadline::current),
                Deadline::never(),
                "{way:?}"
            );
            let current = kept.context.run(Deadline::current);
            assert_eq!(current, Deadline::never(), "{way:?}");
            kept.outlive();
            let later = kept.context.run(|| {
                Way::SyncInline.run(&limit("in_time_disarms::later", 60_000), |_| {
                    Ok::<_, TimeoutError>(7)
                })
            });
            assert!(matches!(later, Outcome::Success(7)), "{way:?}: {later:?}");
        }
    }
}

annotated! {
    mod given, [name = "in_time_disarms::given", secs = 60], (cancel_token: CancelToken) -> Result<CancelToken, TimeoutError> {
        Ok(cancel_token.clone())
    }
}

#[test]
fn a_kept_token_is_still_cancelled_by_upstream() {
    for way in EVERY_WAY {
        let request = CancelToken::new();
        let kept = given::call(way, request.clone()).unwrap();
        let below = kept.child();
        assert_eq!(kept.cause(), None, "{way:?}");
        request.cancel();
        assert_eq!(kept.cause(), Some(Cause::Cancelled), "{way:?}");
        assert_eq!(below.cause(), Some(Cause::Cancelled), "{way:?}");
    }
}

/// The enclosing call still runs: its deadline still cancels the token, with the cause that nested
/// calls see.
#[test]
fn a_token_kept_by_the_enclosing_call_still_has_its_deadline() {
    for way in EVERY_WAY {
        let (sender, kept) = mpsc::channel();
        let outer = Way::SyncWorker.run(&limit("in_time_disarms::around", short()), move |token| {
            let timeout = limit("in_time_disarms::inside", 60_000);
            let inner = way.run(&timeout, Ok::<_, TimeoutError>).success().unwrap();
            sender
                .send((inner.deadline(), token.deadline(), inner))
                .unwrap();
            until_cancelled(&token)
        });
        assert_timed_out(way, &outer);
        let (deadline, around, token) = kept.recv().unwrap();
        assert_eq!(deadline, around, "{way:?}");
        assert_eq!(token.cause(), Some(Cause::DeadlineExceeded), "{way:?}");
    }
}

#[test]
fn after_any_other_outcome_a_token_stays_cancelled() {
    for way in EVERY_WAY {
        for cancels in [false, true] {
            let (sender, kept) = mpsc::channel();
            let outcome = way.run(
                &limit("in_time_disarms::cancelled", short()),
                move |token| {
                    let child = token.child();
                    if cancels {
                        token.cancel();
                    }
                    sender.send((token.clone(), child)).unwrap();
                    until_cancelled(&token)
                },
            );
            let (token, child) = kept.recv().unwrap();
            let cause = outcome.timeout_error().map(TimeoutError::cause);
            assert!(cause.is_some(), "{way:?}: {outcome:?}");
            assert_eq!([token.cause(), child.cause()], [cause; 2], "{way:?}");
        }
    }
}

#[test]
fn the_token_of_a_dropped_call_stays_cancelled() {
    let runtime = support::runtime();
    let _inside = runtime.enter();
    for way in ASYNC {
        let (sender, kept) = mpsc::channel();
        let mut call = way.start(
            &limit("in_time_disarms::dropped", 60_000),
            |token| async move {
                sender.send(token.clone()).unwrap();
                token.cancelled().await;
                Ok::<_, TimeoutError>(())
            },
        );
        assert!(poll_once(&mut call, &Gate::new()).is_pending(), "{way:?}");
        let token = kept.recv_timeout(support::SOON).unwrap();
        drop(call);
        assert_eq!(token.cause(), Some(Cause::Cancelled), "{way:?}");
    }
}

/// A waiter that observed the deadline itself used to spin after a deadline that no longer counts.
#[cfg(target_os = "linux")]
#[test]
fn a_thread_that_waits_for_a_kept_token_sleeps() {
    /// The CPU time of this thread, from its scheduler.
    fn ran() -> Duration {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        Duration::from_nanos(stat.split(' ').next().unwrap().parse().unwrap())
    }

    for way in EVERY_WAY {
        let (sender, waiter) = mpsc::channel();
        let outcome = way.run(&limit("in_time_disarms::waiter", short()), move |token| {
            let is_waiting = Gate::new();
            let waiting = is_waiting.clone();
            let thread = thread::spawn(move || {
                waiting.open();
                let before = ran();
                let cause = token.wait_timeout(3 * short_limit());
                (cause, ran().saturating_sub(before))
            });
            is_waiting.wait();
            sender.send(thread).unwrap();
            // The wait is registered by then; if not, it finds the call finished, which is fine
            // too.
            thread::sleep(Duration::from_millis(20));
            Ok::<_, TimeoutError>(())
        });
        let (cause, busy) = waiter.recv().unwrap().join().unwrap();
        if outcome.status() == CallStatus::Ok {
            assert_eq!(cause, None, "{way:?}");
            assert!(busy < short_limit(), "{way:?}: {busy:?}");
        }
    }
}

/// The timer thread used to cancel a token whose call had just ended in time. Many calls end
/// together, just as their timers are due.
#[test]
fn a_call_that_ends_just_in_time_is_not_cancelled_afterwards() {
    let runtime = support::runtime();
    for round in 1..=40 {
        let (go, start) = (CancelToken::new(), Instant::now());
        let calls: Vec<_> = (0..200)
            .map(|_| {
                let go = go.clone();
                let timeout = limit("in_time_disarms::just", 20);
                runtime.spawn(async move {
                    let outcome = timeout.as_task().outcome_async(|token| async move {
                        go.cancelled_owned().await;
                        Ok::<_, TimeoutError>(token)
                    });
                    let token = outcome.await.success()?;
                    Some((token.cause(), token))
                })
            })
            .collect();
        let lead = Duration::from_micros(50 * round);
        while start.elapsed() + lead < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        go.cancel();
        let ended: Vec<_> = calls
            .into_iter()
            .filter_map(|call| support::block_on(call).unwrap())
            .collect();
        thread::sleep(Duration::from_millis(5));
        for (cause, token) in ended {
            assert_eq!(token.cause(), cause);
        }
    }
}

/// Virtual time jumps over the deadline of a finished call.
#[tokio::test(start_paused = true)]
async fn virtual_time_does_not_cancel_the_token_of_a_finished_call() {
    for way in [Way::AsyncInline, Way::AsyncTask] {
        let timeout = limit("in_time_disarms::virtual", 300);
        let call = way.start(&timeout, |token| async { Ok::<_, TimeoutError>(token) });
        let token = call.await.success().unwrap();
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(token.cause(), None, "{way:?}");
        assert_eq!(token.deadline(), Deadline::never(), "{way:?}");
    }
}
