//! Limits that are changed while the process runs, by name.

use crate::own_process::{in_own_process, in_own_process_with};
use crate::support;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use support::{EVERY_WAY, LONG, Way, block_on, limit, until_cancelled};
use timeout_runtime::limits::{self, Origin};
use timeout_runtime::{Deadline, Outcome, TimeoutError, timeout, within_blocking};

const SHORT: Duration = Duration::from_millis(5);
const LONGER: Duration = Duration::from_secs(3600);

/// The limit that a call of this name has.
fn limit_of(name: &'static str, way: Way) -> Option<Duration> {
    let outcome = way.run(&limit(name, LONG), |token| {
        token.cancel();
        until_cancelled(&token)
    });
    outcome.timeout_error().expect("a cancelled call").limit()
}

// Fails if one of the ways to run keeps the limit of the code.
#[test]
fn a_limit_that_is_set_holds_for_the_next_call_in_every_place() {
    in_own_process(|| {
        for way in EVERY_WAY {
            let in_code = Some(Duration::from_millis(LONG));
            assert_eq!(limit_of("set", way), in_code, "{way:?}");
            limits::set("set", LONGER).unwrap();
            assert_eq!(limit_of("set", way), Some(LONGER), "{way:?}");
            limits::set("set", Duration::MAX).unwrap();
            assert_eq!(limit_of("set", way), None, "{way:?}");
            assert_eq!(limit_of("other", way), in_code, "{way:?}");
            assert!(limits::reset("set"));
            assert_eq!(limit_of("set", way), in_code, "{way:?}");
        }
    });
}

#[timeout(name = "annotated", secs = 60, run = "inline")]
fn annotated() -> Result<(), TimeoutError> {
    cancel_token.sleep(Duration::MAX)
}

#[timeout(name = "annotated_async", secs = 60)]
async fn annotated_async() -> Result<(), TimeoutError> {
    std::future::pending().await
}

#[timeout(name = "only_deadline", deadline = Deadline::after(Duration::from_secs(60)))]
fn with_a_deadline_only() -> Result<(), TimeoutError> {
    cancel_token.sleep(Duration::MAX)
}

// Fails if a function without a limit in its attribute gets none.
#[test]
fn annotated_functions_time_out_at_the_limit_that_is_set() {
    in_own_process(|| {
        for name in ["annotated", "annotated_async", "only_deadline"] {
            limits::set(name, SHORT).unwrap();
        }
        let results = [
            annotated(),
            block_on(annotated_async()),
            with_a_deadline_only(),
        ];
        for result in results {
            let error = result.unwrap_err();
            assert!(error.is_timed_out(), "{error}");
            assert_eq!(error.limit(), Some(SHORT), "{error}");
        }
    });
}

// Fails if a nested call keeps the limit of the code, or loses the inherited deadline.
#[test]
fn a_nested_call_has_the_limit_that_is_set_within_the_inherited_deadline() {
    in_own_process(|| {
        limits::set("nested", LONGER).unwrap();
        let outer = limit("enclosing", LONG).inline();
        let outcome: Outcome<_, TimeoutError> = outer.outcome(|_token| {
            limit("nested", 1).inline().call(|token| {
                let left = token.remaining();
                token.cancel();
                let error = until_cancelled(&token).unwrap_err();
                Ok::<_, TimeoutError>((left, error.limit()))
            })
        });
        let (left, limit) = outcome.success().expect("both calls succeed");
        assert_eq!(limit, Some(LONGER));
        assert!(left <= Some(Duration::from_millis(LONG)), "{left:?}");
        assert!(left > Some(Duration::from_millis(1)), "{left:?}");
    });
}

#[test]
fn a_running_call_keeps_its_limit() {
    in_own_process(|| {
        let outcome = limit("running", LONG).inline().outcome(|token| {
            limits::set("running", SHORT).unwrap();
            token.cancel();
            until_cancelled(&token)
        });
        let error = outcome.timeout_error().expect("a cancelled call").clone();
        assert_eq!(error.limit(), Some(Duration::from_millis(LONG)));
    });
}

// Fails if the values of one function see a change and those of another one do not.
#[test]
fn each_call_has_a_limit_that_was_in_force_while_it_began() {
    in_own_process(|| {
        let both = [Some(LONGER), Some(2 * LONGER)];
        limits::set("changing", LONGER).unwrap();
        let has_ended = AtomicBool::new(false);
        thread::scope(|scope| {
            let calls = [Way::SyncInline, Way::AsyncInline, Way::SyncWorker].map(|way| {
                scope.spawn(move || {
                    for _ in 0..2000 {
                        let limit = limit_of("changing", way);
                        assert!(both.contains(&limit), "{way:?}: {limit:?}");
                    }
                })
            });
            scope.spawn(|| {
                while !has_ended.load(Ordering::Relaxed) {
                    limits::set("changing", 2 * LONGER).unwrap();
                    limits::set("changing", LONGER).unwrap();
                }
            });
            let results = calls.map(thread::ScopedJoinHandle::join);
            has_ended.store(true, Ordering::Relaxed);
            for result in results {
                result.unwrap();
            }
        });
        assert_eq!(limit_of("changing", Way::SyncInline), Some(LONGER));
    });
}

#[test]
fn the_list_names_each_limit_with_its_origin() {
    let variables = [("TIMEOUT_LIMITS", "price=80ms, stock=1m 30s")];
    in_own_process_with(&variables, || {
        limits::set("price", SHORT).unwrap();
        limits::set("misspelt", LONGER).unwrap();
        for name in ["price", "stock", "scan"] {
            limit_of(name, Way::SyncInline);
        }
        let at_this_line = within_blocking(LONGER, |_token| ());
        assert_eq!(at_this_line, Ok(()));
        let in_code = Duration::from_millis(LONG);
        let list = limits::list();
        let (unnamed, named): (Vec<_>, _) = list
            .iter()
            .map(|limit| (&*limit.name, limit.limit, limit.origin, limit.in_code))
            .partition(|(name, ..)| name.contains(".rs:"));
        let stock = Duration::from_secs(90);
        assert_eq!(
            named,
            [
                ("misspelt", LONGER, Origin::Set, None),
                ("price", SHORT, Origin::Set, Some(in_code)),
                ("scan", in_code, Origin::Code, Some(in_code)),
                ("stock", stock, Origin::Environment, Some(in_code)),
            ]
        );
        let [(_, limit, origin, _)] = unnamed[..] else {
            panic!("{unnamed:?}");
        };
        assert_eq!((limit, origin), (LONGER, Origin::Code));
        // Without the set limit, that of the environment holds.
        assert!(limits::reset("price"));
        assert_eq!(
            limit_of("price", Way::SyncInline),
            Some(Duration::from_millis(80))
        );
    });
}

// Fails if a part of a wrong variable applies, or if nobody is told.
#[test]
fn a_wrong_variable_changes_nothing_and_is_told_once() {
    let variables = [("TIMEOUT_LIMITS", "price=80ms, stock=soon")];
    let printed = in_own_process_with(&variables, || {
        let expected = "the limit `stock=soon` is not a name and a duration, as in \
                        `price=1m 30s` in the variable `TIMEOUT_LIMITS`; no limit was changed";
        let error = limits::check_environment().unwrap_err();
        assert_eq!(error.to_string(), expected);
        for _ in 0..3 {
            let in_code = Some(Duration::from_millis(LONG));
            assert_eq!(limit_of("price", Way::SyncInline), in_code);
        }
    });
    let told = printed.matches("timeout-runtime: the limit `stock=soon`");
    let is_parent = !printed.is_empty();
    assert!(!is_parent || told.count() == 1, "{printed}");
}

#[test]
fn a_limit_of_zero_is_refused_and_changes_nothing() {
    in_own_process(|| {
        limits::set("zero", LONGER).unwrap();
        let error = limits::set("zero", Duration::ZERO).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the limit of `zero` is zero; no limit was changed"
        );
        limits::load("other=1s, zero=0s").unwrap_err();
        assert_eq!(limit_of("zero", Way::SyncInline), Some(LONGER));
        assert_eq!(limits::list().len(), 1);
    });
}
