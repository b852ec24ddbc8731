// The names that generated code needs may be redefined in the module of the function.

mod shadowed {
    use timeout_runtime::{TimeoutError, timeout};

    type Result<T> = ::std::result::Result<T, TimeoutError>;
    struct Box;
    struct Option;
    struct Some;
    struct Clone;
    struct Pin;
    mod std {}
    mod core {}
    mod tokio {}
    mod alloc {}
    trait Future {}
    trait FnOnce {}
    trait Send {}

    #[timeout(secs = 60)]
    pub fn scan(rows: Vec<u8>) -> Result<usize> {
        cancel_token.check()?;
        Ok(rows.len())
    }

    #[timeout(secs = 60)]
    pub async fn scan_async(rows: &[u8]) -> Result<usize> {
        cancel_token.check()?;
        Ok(rows.len())
    }

    #[timeout(secs = 60)]
    pub fn scan_later(rows: Vec<u8>) -> impl ::std::future::Future<Output = Result<usize>> {
        async move { Ok(rows.len()) }
    }
}

fn main() {
    assert_eq!(shadowed::scan(vec![1]).unwrap(), 1);
    drop(shadowed::scan_async(&[]));
    drop(shadowed::scan_later(vec![]));
}
