use timeout_runtime::{TimeoutError, timeout};

#[timeout(secs = 60)]
fn scan<T, const N: usize>(
    rows: [T; N],
    of: impl Into<u8> + Send + 'static,
) -> Result<u8, TimeoutError>
where
    T: Into<u8> + Send + 'static,
{
    Ok(of.into() + rows.into_iter().map(Into::into).sum::<u8>())
}

fn main() {
    assert_eq!(scan([1, 2], 4).unwrap(), 7);
}
