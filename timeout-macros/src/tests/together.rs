//! Several mistakes at once: all are told, and nothing that only follows from them.

use super::expand;
use super::mistakes::{WORDS, check, check_args, errors};

// A misspelt `run`, or one that a missing comma had swallowed, was told together with what the
// default in its place would have broken.
#[test]
fn what_was_not_understood_has_no_consequences() {
    for (args, mistake) in [
        ("ms = 5 run = \"inline\"", "expected `,`"),
        ("5, run(inline)", "did you mean `ms = 5`?"),
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

// Nobody was told of a borrow as long as the value of `cancel` was refused, though `run` said where
// the operation goes.
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
fn all_mistakes_come_at_once() {
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
