use std::time::Duration;
use timeout_runtime::{TimeoutError, timeout};

const LIMIT: Duration = Duration::from_millis(50);

#[timeout("1m 30s")]
fn text(rows: Vec<u8>) -> Result<usize, TimeoutError> {
    Ok(rows.len())
}

#[timeout(LIMIT, name = "scan")]
fn constant(rows: Vec<u8>) -> Result<usize, TimeoutError> {
    Ok(rows.len())
}

#[timeout(Duration::from_millis(5), cancel = false)]
async fn call(rows: Vec<u8>) -> Result<usize, TimeoutError> {
    Ok(rows.len())
}

#[timeout(patience * 2, run = "inline")]
fn variable(rows: &[u8], patience: Duration) -> Result<usize, TimeoutError> {
    Ok(rows.len())
}

macro_rules! through_a_macro {
    ($name:ident, $limit:literal, $grace:expr) => {
        #[timeout($limit, grace = $grace)]
        fn $name() -> Result<(), TimeoutError> {
            Ok(())
        }
    };
}

through_a_macro!(literal, "50ms", LIMIT);

fn main() {
    let _ = (text, constant, call, variable, literal);
}
