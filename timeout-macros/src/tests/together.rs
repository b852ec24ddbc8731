//! Tests of several mistakes together: all are reported, and no errors that only follow from them.

use super::expand;
use super::mistakes::{WORDS, check, check_args, errors};

// A misspelt `run`, or a `run` after a missing comma, was reported together with errors that only
// the default value causes.
#[test]
fn an_option_that_was_not_understood_causes_no_further_errors() {
    for (args, mistake) in [
        ("ms = 5 run = \"inline\"", "expected `,`"),
        ("name = \"w\", 5, run(inline)", "only the first argument"),
        ("ms = 5, rum = \"inline\"", "unknown option `rum`"),
        ("ms = 5, run = \"inlin\"", "unknown value `inlin`"),
        (
            "ms = 5, cancel = false, rum = \"worker\"",
            "unknown option `rum`",
        ),
    ] {
        for function in ["unsafe fn", "async fn"] {
            let source =
                format!("#[timeout({args})] {function} f(&self, x: &str) -> Option<u8> {{ None }}");
            let found = errors(expand(&source));
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].starts_with(mistake), "{found:?}");
        }
    }
}

// A borrow was not reported while the value of `cancel` was refused, although `run` gave the place
// of the operation.
#[test]
fn a_refused_flag_hides_no_other_mistake() {
    let flag = "`cancel` takes `true` or `false`, as in `cancel = false`";
    let borrow = "an operation that runs on a worker cannot borrow from its caller; take `String`, or set `run = \"inline\"`";
    for (args, function, expected) in [
        (
            "cancel = 1, run = \"worker\"",
            "async fn",
            &[flag, borrow][..],
        ),
        ("cancel = 1", "fn", &[flag, borrow]),
        ("cancel = 1", "async fn", &[flag]),
    ] {
        check(
            &format!("#[timeout(ms = 5, {args})] {function} f(x: &str) -> Option<u8> {{ None }}"),
            expected,
        );
    }
}

#[test]
fn all_mistakes_are_reported_together() {
    check(
        "#[timeout(name = 5, ms = \"a\", secs = 0, cancel = maybe, foo = 4, ms = 4)] const fn f() -> Option<u8> { None }",
        &[
            "`name` takes a string, as in `name = \"scan\"`",
            "`ms` takes an integer, as in `ms = 50`",
            "`secs` must be at least 1",
            "`cancel` takes `true` or `false`, as in `cancel = false`",
            &format!("unknown option `foo`; {WORDS}"),
            "option `ms` is given twice",
            "a `const fn` cannot be timed out; drop `const`",
        ],
    );
    check_args("ms = 5 secs = 5", &["expected `,`"]);
    check_args(
        "ms, secs, grace = \"x\"",
        &[
            "`ms` takes an integer, as in `ms = 50`",
            "`secs` takes an integer, as in `secs = 5`",
            "`x` is not a whole number with a unit, as in `1s 500ms`",
        ],
    );
}
