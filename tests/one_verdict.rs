//! Rule 1: one verdict, decided by one atomic word, taken by the caller's side.

mod support;

use std::time::Duration;

use support::{EVERY_WAY, limit, record, until_fired};
use timeout_runtime::{EventKind, Outcome, TimeoutError};

#[test]
fn an_answer_in_time_is_a_success_every_way() {
    let recorder = record("one_verdict::in_time");
    for way in EVERY_WAY {
        let outcome = way.run(&limit("one_verdict::in_time", 60_000), |_| {
            Ok::<_, TimeoutError>(7)
        });
        assert!(
            matches!(outcome, Outcome::Success(7)),
            "{way:?}: {outcome:?}"
        );
    }
    assert_eq!(recorder.kinds(), vec![EventKind::Succeeded; 5]);
}

#[test]
fn an_operation_that_heeds_its_token_is_timed_out_every_way() {
    for way in EVERY_WAY {
        let outcome = way.run(&limit("one_verdict::heeds", 20), |token| {
            until_fired(&token)
        });
        let Outcome::TimedOut(error) = outcome else {
            panic!("{way:?}: {outcome:?}");
        };
        assert!(error.elapsed() >= Duration::from_millis(20), "{way:?}");
    }
}
