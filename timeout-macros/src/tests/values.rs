//! Tests that each value is checked against the form that its option takes.

use super::expand;
use super::mistakes::check_args;

#[test]
fn a_value_of_the_wrong_kind_is_reported() {
    let integer = "`ms` takes an integer, as in `ms = 50`";
    for args in [
        "ms = 1.5",
        "ms = \"50\"",
        "ms = true",
        "ms = 'x'",
        "ms = -1.5",
        "ms",
        "ms(5)",
        "ms: 5",
        "ms == 5",
        "ms => 5",
        "ms = 5ms",
        "ms = 5us",
        "ms =",
        "ms = 5 +",
    ] {
        check_args(args, &[integer]);
    }
    check_args(
        "ms = 5, name = 5",
        &["`name` takes a string, as in `name = \"scan\"`"],
    );
    check_args(
        "ms = 5, name = c\"x\"",
        &["`name` takes a string, as in `name = \"scan\"`"],
    );
    for args in ["cancel = 1", "cancel = maybe", "cancel = \"true\""] {
        check_args(
            &format!("ms = 5, {args}"),
            &["`cancel` takes `true` or `false`, as in `cancel = false`"],
        );
    }
    for args in [
        "token = self",
        "token = a::b",
        "token = a.b",
        "token = \"a b\"",
        "token = \"self\"",
        "token = \"\"",
    ] {
        check_args(
            &format!("ms = 5, {args}"),
            &["`token` takes an identifier, as in `token = stop`"],
        );
    }
    for args in [
        "crate = 5",
        "crate = \"a b\"",
        "crate = a::<u8>",
        "crate = f()",
        "crate = a::try",
        "crate = \"fn\"",
        "crate = Self::x",
    ] {
        check_args(
            &format!("ms = 5, {args}"),
            &["`crate` takes a path, as in `crate = facade::timeout_runtime`"],
        );
    }
    for args in [
        "fallback = 5",
        "fallback = || 5",
        "fallback = move |a, b| 5",
    ] {
        check_args(
            &format!("ms = 5, {args}"),
            &["`fallback` takes a function of `TimeoutError`, as in `fallback = |_| 0`"],
        );
    }
    for text in ["", "5", "|_| 0", "a b", "fn", "a::", "a()", "n/a"] {
        check_args(
            &format!("ms = 5, fallback = {text:?}"),
            &["`fallback` takes a path between quotes; drop the quotes around anything else"],
        );
        check_args(
            &format!("ms = 5, on_late = {text:?}"),
            &["`on_late` takes a path between quotes; drop the quotes around anything else"],
        );
    }
    for args in ["on_late = 5", "on_late = || {}", "on_late = |a, b| {}"] {
        check_args(
            &format!("ms = 5, {args}"),
            &["`on_late` takes a function of the return type, as in `on_late = give_back`"],
        );
    }
    check_args(
        "ms = 5, run = inline",
        &["`run` takes a string, as in `run = \"inline\"`"],
    );
    check_args(
        "limit = 5",
        &["`limit` takes a duration, as in `limit = \"1m 30s\"`"],
    );
    check_args(
        "ms = 5, grace = 5",
        &["`grace` takes a duration, as in `grace = \"250ms\"`"],
    );
}

// A macro that accepts only literals in the attributes below it panicked on the path.
#[test]
fn a_path_in_quotes_expands_like_the_path() {
    let with = |fallback: &str, late: &str, token: &str| {
        let args = format!("ms = 5, fallback = {fallback}, on_late = {late}, token = {token}");
        expand(&format!(
            "#[timeout({args})] fn f() -> u8 {{ stop.check() }}"
        ))
        .to_string()
    };
    assert_eq!(
        with("\"a::b\"", "\"<Self as T>::late::<u8>\"", "\"stop\""),
        with("a::b", "<Self as T>::late::<u8>", "stop"),
    );
}

#[test]
fn a_value_out_of_range_is_reported() {
    for args in ["ms = 0", "ms = -1", "ms = 0u64", "ms = 0x0"] {
        check_args(args, &["`ms` must be at least 1"]);
    }
    check_args("secs = 0", &["`secs` must be at least 1"]);
    check_args(
        "ms = 5, max_abandoned = 0",
        &["`max_abandoned` must be at least 1"],
    );
    check_args("limit = \"0s\"", &["`limit` must be longer than zero"]);
    check_args(
        "ms = 5, grace = \"0s\"",
        &["`grace` must be longer than zero"],
    );
    check_args(
        "ms = 99999999999999999999",
        &["`ms` must be at most 18446744073709551615"],
    );
}

/// The compiler's error pointed into the runtime, and did not name the intended option.
#[test]
fn a_duration_in_place_of_a_number_is_reported() {
    for value in [
        "Duration::from_secs(5)",
        "(Duration::from_secs(5))",
        "std::time::Duration::MAX",
        "2 * core::time::Duration::from_millis(5)",
    ] {
        for option in ["ms", "secs"] {
            let mistake =
                format!("`{option}` takes an integer; for a `Duration`, write `limit = ..`");
            check_args(&format!("{option} = {value}"), &[&mistake]);
        }
    }
    check_args("ms = Duration::from_secs(5).as_secs()", &[]);
    check_args("secs = Duration::from_secs(5).as_millis() as u64", &[]);
}

#[test]
fn a_malformed_duration_is_reported() {
    let units = "expected one of `ns`, `us`, `ms`, `s`, `m`, `h`, `d`";
    check_args(
        "limit = \"5 sec\"",
        &[&format!("unknown unit `sec`; did you mean `s`? {units}")],
    );
    check_args("limit = \"5\"", &[&format!("`5` has no unit; {units}")]);
    check_args(
        "limit = \"1.5s\"",
        &["`1.5s` is not a whole number with a unit, as in `1s 500ms`"],
    );
    check_args(
        "limit = \"99999999999999999999s\"",
        &["this is longer than a `Duration` can hold"],
    );
}

#[test]
fn tokens_and_deadlines_are_expressions() {
    check_args(
        "ms = 5, upstream = \"a\"",
        &["`upstream` takes tokens, as in `upstream = [shutdown, request]`"],
    );
    check_args(
        "ms = 5, upstream = [a, 5]",
        &["`upstream` takes tokens, as in `upstream = [shutdown, request]`"],
    );
    let deadline =
        "`deadline` takes a `Deadline` or an `Instant`, as in `deadline = request.deadline`";
    check_args("deadline = 5", &[deadline]);
    check_args("deadline = \"noon\"", &[deadline]);
    check_args(
        "deadline = \"5s\"",
        &[&format!("{deadline}; did you mean `limit = \"5s\"`?")],
    );
    check_args(
        "ms = 5, inherit = 0",
        &["`inherit` takes `true` or `false`, as in `inherit = false`"],
    );
}
