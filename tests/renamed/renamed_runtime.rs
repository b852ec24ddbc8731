//! The attribute in a crate where the runtime is renamed, or re-exported by another crate.

use futures::executor::block_on;

fn limit(hangs: bool) -> u64 {
    if hangs { 30 } else { 60_000 }
}

type CallResult = Result<u32, tmo::TimeoutError>;

#[tmo::timeout(ms = limit(hangs), crate = tmo)]
fn renamed(hangs: bool) -> CallResult {
    if hangs {
        cancel_token.sleep(std::time::Duration::MAX)?;
    }
    Ok(7)
}

#[tmo::timeout(ms = limit(hangs), crate = "tmo")]
async fn renamed_async(hangs: bool) -> CallResult {
    if hangs {
        std::future::pending::<()>().await;
    }
    Ok(7)
}

#[facade::rt::timeout(ms = limit(hangs), crate = facade::rt)]
fn handed_on(hangs: bool) -> CallResult {
    if hangs {
        cancel_token.sleep(std::time::Duration::MAX)?;
    }
    Ok(7)
}

#[facade::rt::timeout(ms = limit(hangs), crate = ::facade::rt, fallback = |_| 0)]
fn handed_on_future(hangs: bool) -> impl Future<Output = u32> {
    async move {
        if hangs {
            std::future::pending::<()>().await;
        }
        7
    }
}

facade::within_a_second! {
    fn from_a_macro(hangs: bool) -> CallResult {
        if hangs {
            cancel_token.sleep(std::time::Duration::MAX)?;
        }
        Ok(7)
    }
}

#[test]
fn the_runtime_can_be_renamed_or_reexported() {
    for call in [
        renamed,
        |hangs| block_on(renamed_async(hangs)),
        handed_on,
        from_a_macro,
    ] {
        assert_eq!(call(false).unwrap(), 7);
        assert!(call(true).unwrap_err().is_timed_out());
    }
    assert_eq!(block_on(handed_on_future(false)), 7);
    assert_eq!(block_on(handed_on_future(true)), 0);
}
