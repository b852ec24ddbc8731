use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use timeout_runtime::{TimeoutError, timeout};

#[timeout(secs = 60)]
fn scan(rows: &[u8]) -> impl Future<Output = Result<usize, TimeoutError>> + Send {
    async move { Ok(rows.len()) }
}

#[timeout(secs = 60)]
fn scan_boxed(
    rows: &[u8],
) -> Pin<Box<dyn Future<Output = Result<usize, TimeoutError>> + Send + '_>> {
    if rows.is_empty() {
        return Box::pin(std::future::ready(Ok(0)));
    }
    Box::pin(async move { Ok(rows.len()) })
}

macro_rules! through_a_macro {
    ($function:ident, $future:ty, $body:block) => {
        #[timeout(secs = 60)]
        fn $function() -> $future $body
    };
}

through_a_macro!(hidden, Pin<Box<dyn Future<Output = Option<u8>>>>, {
    Box::pin(async { Some(7) })
});

fn now<T>(future: impl Future<Output = T>) -> T {
    match Box::pin(future)
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it is ready at once"),
    }
}

fn main() {
    assert_eq!(now(scan(&[1, 2])).unwrap(), 2);
    assert_eq!(now(scan_boxed(&[1, 2])).unwrap(), 2);
    assert_eq!(now(hidden()), Some(7));
}
