//! A child process that prints the deadline in its environment twice, or the error for a malformed
//! one.

use timeout_runtime::Deadline;

fn deadline() -> String {
    match Deadline::from_env("CHILD_DEADLINE") {
        Ok(None) => "none".to_owned(),
        Ok(Some(deadline)) => match deadline.remaining() {
            None => "never".to_owned(),
            Some(left) => left.as_nanos().to_string(),
        },
        Err(invalid) => format!("{invalid}"),
    }
}

fn main() {
    println!("{}", deadline());
    println!("{}", deadline());
}
