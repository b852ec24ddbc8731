use timeout_runtime::{TimeoutError, timeout};

struct Fail;

impl From<TimeoutError> for Fail {
    fn from(_: TimeoutError) -> Self {
        Fail
    }
}

impl From<std::num::ParseIntError> for Fail {
    fn from(_: std::num::ParseIntError) -> Self {
        Fail
    }
}

impl std::fmt::Debug for Fail {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Ok(())
    }
}

#[timeout(ms = 50)]
fn scan() -> Result<u32, Fail> {
    let n: u32 = "1".parse()?;
}

fn main() {}
