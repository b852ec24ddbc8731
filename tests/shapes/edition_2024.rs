//! Functions that compile only since edition 2024.

use std::sync::Mutex;

use timeout_runtime::{TimeoutError, timeout};

use crate::shapes::{
    CallResult, Hangs, Log, Noted, Shape, Value, limit, pass, pass_async, poll_limited, poll_plain,
};
use crate::support::Way;

shapes! { ($on:meta, $run:literal)
    let_chains [worker inline] |hangs, log| chained(hangs, Some(log.note("a")), Some(log.note("bb"))) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn chained(hangs: Hangs, a: Option<Noted>, b: Option<Noted>) -> CallResult {
            pass(hangs)?;
            if let Some(a) = a
                && let Some(ref b) = b
                && a.value() < b.value()
            {
                Ok(b.value())
            } else if let Some(b) = b {
                Ok(b.value())
            } else {
                Ok(0)
            }
        }
    }

    let_chains_async [async_inline async_task async_worker] |hangs, log| chained(
        hangs, Some(log.note("a")), log.note("bb"),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn chained(hangs: Hangs, a: Option<Noted>, b: Noted) -> CallResult {
            let found = 'rows: loop {
                pass_async(hangs).await?;
                for row in 0.. {
                    if row == 5 && let Some(a) = &a && a.value() < b.value() {
                        break 'rows row + a.value();
                    }
                }
            };
            Ok(found)
        }
    }

    locals_in_the_tail [worker inline] |hangs, log| locks(hangs, Mutex::new(log.note("a"))) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn locks(hangs: Hangs, lock: Mutex<Noted>) -> CallResult {
            pass(hangs)?;
            let local = Mutex::new(lock.lock().unwrap().1.note("local"));
            Ok(lock.lock().unwrap().value() + local.lock().unwrap().1.note("of the tail").value())
        }
    }

    locals_in_the_tail_async [async_inline async_task async_worker] |hangs, log| locks(
        hangs, Mutex::new(log.note("a")), log.note("b"),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn locks(hangs: Hangs, lock: Mutex<Noted>, b: Noted) -> CallResult {
            pass_async(hangs).await?;
            let local = Mutex::new(b.1.note("local"));
            Ok(lock.lock().unwrap().value() + local.lock().unwrap().1.note("of the tail").value())
        }
    }

    captured_implicitly [future] |hangs, log| async {
        let (table, a) = (Table(log.note("self")), log.note("a"));
        table.later(hangs, &a).await.number()
    } => {
        struct Table(Noted);

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn later(&self, hangs: Hangs, a: &Noted) -> impl Future<Output = Result<u32, TimeoutError>> {
                async move {
                    pass_async(hangs).await?;
                    Ok(self.0.value() + a.value())
                }
            }
        }
    }
}
