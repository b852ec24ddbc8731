//! A child process reads the deadline that its parent has written, and rejects malformed ones.

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::Duration;

use timeout_runtime::Deadline;

/// Output of a child with `value` in its environment: two readings, the second one a little later.
fn output_of(value: Option<OsString>) -> [String; 2] {
    let mut child = Command::new(env!("CARGO_BIN_EXE_prints_deadline"));
    child
        .env_remove("CHILD_DEADLINE")
        .envs(value.map(|value| ("CHILD_DEADLINE", value)));
    let output = child
        .stdin(Stdio::null())
        .output()
        .expect("the program is built");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).expect("text");
    let mut lines = said.lines().map(str::to_owned);
    [(); 2].map(|()| lines.next().expect("two lines"))
}

/// Time left that a child reads from `value`, now and a little later.
fn left(value: String) -> [Duration; 2] {
    let nanos = |said: String| said.parse().unwrap_or_else(|_| panic!("{said}"));
    output_of(Some(value.into()))
        .map(nanos)
        .map(Duration::from_nanos)
}

/// The wall clock may be adjusted between the two processes, but hardly by a minute.
const SLACK: Duration = Duration::from_secs(60);

#[test]
fn a_child_has_the_time_left_of_its_parent() {
    let hour = Duration::from_secs(3600);
    for limit in [hour, 24 * 365 * hour, 300 * 24 * 365 * hour] {
        let deadline = Deadline::after(limit);
        let [first, second] = left(deadline.to_env());
        let after = deadline.remaining().expect("the deadline is not never");
        assert!(second <= first && first <= limit, "{first:?}, {second:?}");
        assert!(second + SLACK >= after, "{second:?} of {after:?}");
    }
}

#[test]
fn a_child_of_a_parent_without_time_left_has_none() {
    let past = Deadline::after(Duration::ZERO);
    assert_eq!(left(past.to_env()), [Duration::ZERO; 2]);
}

#[test]
fn a_child_distinguishes_never_from_an_unset_variable() {
    let never = Deadline::never().to_env();
    assert_eq!(output_of(Some(never.into())), ["never"; 2]);
    assert_eq!(output_of(None), ["none"; 2]);
}

/// The text of a deadline, with its wall-clock part moved by `minutes`.
fn moved(text: &str, minutes: i64) -> String {
    let (left, end) = text.split_once('@').expect("two parts");
    let end: u64 = end.parse().expect("a number");
    let end = end.checked_add_signed(minutes * 60_000_000_000);
    format!("{left}@{}", end.expect("in range"))
}

#[test]
fn a_jump_of_the_wall_clock_gives_a_child_no_more_time() {
    let hour = Duration::from_secs(3600);
    let text = Deadline::after(hour).to_env();
    // An end that seems too late means that the clock was set back.
    for minutes in [1, 60, 1_000_000] {
        let [first, second] = left(moved(&text, minutes));
        assert!(first <= hour && second <= hour, "{first:?}, {second:?}");
    }
    // A clock that is set forward takes time away, and never adds any.
    let [first, _] = left(moved(&text, -30));
    assert!(first <= hour / 2 && first + SLACK >= hour / 2, "{first:?}");
    assert_eq!(left(moved(&text, -61)), [Duration::ZERO; 2]);
    assert_eq!(left(moved(&text, -1_000_000)), [Duration::ZERO; 2]);
}

// Fails if a malformed deadline, or one that no clock can represent, counts as "never" or as unset.
#[test]
fn a_child_rejects_a_malformed_deadline() {
    let most = u64::MAX;
    let mistakes = [
        String::new(),
        "soon".to_owned(),
        "5".to_owned(),
        "-5ns@5".to_owned(),
        format!("{most}0ns@5"),
        // This number is not "never".
        format!("{most}ns@{most}"),
    ];
    for value in mistakes {
        let said = format!("the variable `CHILD_DEADLINE` does not hold a deadline: {value:?}");
        assert_eq!(output_of(Some(value.into())), [said.clone(), said]);
    }
}

// Fails if the value counts as unset.
#[cfg(unix)]
#[test]
fn a_child_rejects_a_deadline_that_is_not_unicode() {
    use std::os::unix::ffi::OsStringExt;

    let value = OsString::from_vec(b"5ns@\xff".to_vec());
    let mistake = "the variable `CHILD_DEADLINE` does not hold a deadline: \"5ns@";
    for said in output_of(Some(value)) {
        assert!(said.starts_with(mistake), "{said}");
    }
}
