// A body that mentions its token gets it, wherever the mention is.

use timeout_runtime::{TimeoutError, timeout};

macro_rules! pass {
    ($($body:tt)*) => {
        $($body)*
    };
}

#[timeout(secs = 60)]
fn in_a_format_string() -> Result<String, TimeoutError> {
    Ok(format!("{cancel_token:?}"))
}

#[timeout(secs = 60)]
fn in_a_macro() -> Result<bool, TimeoutError> {
    pass!(let fired = cancel_token.is_cancelled(););
    Ok(fired)
}

#[timeout(secs = 60)]
fn in_a_closure() -> Result<bool, TimeoutError> {
    let fired = || cancel_token.is_cancelled();
    Ok(fired())
}

#[timeout(secs = 60)]
#[deny(unused)]
fn shadowed_by_a_let(rows: Vec<u8>) -> Result<usize, TimeoutError> {
    let cancel_token = rows.len();
    Ok(cancel_token)
}

#[timeout(secs = 60)]
#[deny(unused)]
fn only_mentioned() -> Result<&'static str, TimeoutError> {
    Ok(stringify!(cancel_token))
}

fn main() {
    assert!(in_a_format_string().unwrap().contains("in_a_format_string"));
    assert!(!in_a_macro().unwrap());
    assert!(!in_a_closure().unwrap());
    assert_eq!(shadowed_by_a_let(vec![1]).unwrap(), 1);
    assert_eq!(only_mentioned().unwrap(), "cancel_token");
}
