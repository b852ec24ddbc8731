use std::borrow::Cow;

use timeout_runtime::{TimeoutError, timeout};

#[timeout(ms = 50)]
fn scan(rows: Vec<Cow<'_, str>>) -> Result<usize, TimeoutError> {
    Ok(rows.len())
}

fn main() {}
