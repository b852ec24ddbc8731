//! A child process reads the deadline that its parent has written; what is none is a mistake there, and not time without end.

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::Duration;

use timeout_runtime::Deadline;

/// What a child is told by `value`, at once and a little later.
fn told(value: Option<OsString>) -> [String; 2] {
    let mut child = Command::new(env!("CARGO_BIN_EXE_told"));
    child
        .env_remove("TOLD_DEADLINE")
        .envs(value.map(|value| ("TOLD_DEADLINE", value)));
    let output = child.stdin(Stdio::null()).output().expect("it was built");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).expect("text");
    let mut lines = said.lines().map(str::to_owned);
    [(); 2].map(|()| lines.next().expect("two lines"))
}

/// What a child has left by `value`, at once and a little later.
fn left(value: String) -> [Duration; 2] {
    let nanos = |said: String| said.parse().unwrap_or_else(|_| panic!("{said}"));
    told(Some(value.into()))
        .map(nanos)
        .map(Duration::from_nanos)
}

/// The wall clock may be set a little between the two processes, but hardly by a minute.
const SLACK: Duration = Duration::from_secs(60);

#[test]
fn a_child_has_what_its_parent_has_left() {
    let hour = Duration::from_secs(3600);
    for limit in [hour, 24 * 365 * hour, 300 * 24 * 365 * hour] {
        let deadline = Deadline::after(limit);
        let [first, second] = left(deadline.to_env());
        let after = deadline.remaining().expect("it comes");
        assert!(second <= first && first <= limit, "{first:?}, {second:?}");
        assert!(second + SLACK >= after, "{second:?} of {after:?}");
    }
}

#[test]
fn a_child_of_a_parent_without_time_has_none() {
    let past = Deadline::after(Duration::ZERO);
    assert_eq!(left(past.to_env()), [Duration::ZERO; 2]);
}

#[test]
fn a_child_is_told_never_and_nothing_apart() {
    let never = Deadline::never().to_env();
    assert_eq!(told(Some(never.into())), ["never"; 2]);
    assert_eq!(told(None), ["none"; 2]);
}

/// The text of a deadline whose wall clock ends `minutes` later, or earlier, than it should.
fn moved(text: &str, minutes: i64) -> String {
    let (left, end) = text.split_once('@').expect("two parts");
    let end: u64 = end.parse().expect("a number");
    let end = end.checked_add_signed(minutes * 60_000_000_000);
    format!("{left}@{}", end.expect("in range"))
}

#[test]
fn a_wall_clock_that_jumps_gives_no_child_more_time() {
    let hour = Duration::from_secs(3600);
    let text = Deadline::after(hour).to_env();
    // The clock was set back by what the end seems to be later.
    for minutes in [1, 60, 1_000_000] {
        let [first, second] = left(moved(&text, minutes));
        assert!(first <= hour && second <= hour, "{first:?}, {second:?}");
    }
    // Set forward it costs time, and never gives any.
    let [first, _] = left(moved(&text, -30));
    assert!(first <= hour / 2 && first + SLACK >= hour / 2, "{first:?}");
    assert_eq!(left(moved(&text, -61)), [Duration::ZERO; 2]);
    assert_eq!(left(moved(&text, -1_000_000)), [Duration::ZERO; 2]);
}

#[test]
fn what_is_no_deadline_is_a_mistake_to_a_child() {
    let most = u64::MAX;
    let mistakes = [
        String::new(),
        "soon".to_owned(),
        "5".to_owned(),
        "-5ns@5".to_owned(),
        format!("{most}0ns@5"),
        // No number is never.
        format!("{most}ns@{most}"),
    ];
    for value in mistakes {
        let said = format!("the variable `TOLD_DEADLINE` does not hold a deadline: {value:?}");
        assert_eq!(told(Some(value.into())), [said.clone(), said]);
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_text_is_a_mistake_to_a_child() {
    use std::os::unix::ffi::OsStringExt;

    let value = OsString::from_vec(b"5ns@\xff".to_vec());
    let mistake = "the variable `TOLD_DEADLINE` does not hold a deadline: \"5ns@";
    for said in told(Some(value)) {
        assert!(said.starts_with(mistake), "{said}");
    }
}
