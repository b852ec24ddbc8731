//! Functions that return a future type explicitly.

use std::future::{self, poll_fn};

use async_trait::async_trait;

use super::*;

struct Table(Noted);

fn table(log: &Log) -> Table {
    Table(log.note("self"))
}

shapes! { ($on:meta, $run:literal)
    hidden [future] |hangs, log| later(
        hangs, log.note("a"), (log.note("b"), log.note("bb")), log.note("not taken along"),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn later(hangs: Hangs, a: Noted, (b, _): (Noted, Noted), _: Noted) -> impl Future<Output = CallResult> {
            let local = a.1.note("local");
            async move {
                pass_async(hangs).await?;
                Ok(a.value() + b.value() + local.value())
            }
        }
    }

    by_default [future] |hangs, log| later(hangs, log.note("a")) => {
        #[cfg_attr($on, timeout(ms = limit(hangs)))]
        fn later(hangs: Hangs, a: Noted) -> impl Future<Output = Option<u32>> + Send + 'static {
            async move {
                pass_async(hangs).await.ok()?;
                Some(a.value())
            }
        }
    }

    hidden_borrows [future] |hangs, log| async {
        let (a, mut b) = (log.note("a"), log.note("b"));
        let result = later(hangs, &a, &mut b, log.note("not captured")).await.number();
        result.map(|result| result + b.value())
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn later<'a>(
            hangs: Hangs, a: &'a Noted, b: &'a mut Noted, _c: Noted,
        ) -> impl Send + Future<Output = Result<&'a Noted, TimeoutError>> + use<'a> {
            async move {
                pass_async(hangs).await?;
                b.0 = "changed";
                Ok(a)
            }
        }
    }

    boxed [future] |hangs, log| later(hangs, log.note("a"), request(log)) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn later(
            hangs: Hangs, mut a: Noted, Request { id, .. }: Request,
        ) -> Pin<Box<dyn Future<Output = CallResult> + Send>> {
            a.0 = "changed";
            if a.value() == 1 {
                return Box::pin(async { Ok(0) });
            }
            Box::pin(async move {
                pass_async(hangs).await?;
                Ok(a.value() + id.value())
            })
        }
    }

    boxed_borrows [future] |hangs, log| async { later(hangs, &log.note("a"), log.note("b"), "key").await } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn later<'a, T: Into<u32> + 'a>(
            hangs: Hangs, a: &'a Noted, b: T, key: &'a str,
        ) -> Pin<Box<dyn Future<Output = CallResult> + 'a>> {
            Box::pin(async move {
                pass_async(hangs).await?;
                Ok(a.value() + b.into() + len(key))
            })
        }
    }

    methods [future] |hangs, log| async {
        let mut table = Table(log.note("self"), log.note("beside"));
        let first = table.shared(hangs, log.note("a")).await?;
        let second = table.changed(hangs, log.note("other")).await?;
        table.owned(hangs).await.map(|third| first + 10 * second + 100 * third)
    } => {
        struct Table(Noted, Noted);

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn shared(&self, hangs: Hangs, a: Noted) -> impl Future<Output = CallResult> + use<'_> {
                async move {
                    pass_async(hangs).await?;
                    Ok(self.0.value() + a.value())
                }
            }

            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn changed(&mut self, hangs: Hangs, a: Noted) -> Pin<Box<dyn Future<Output = CallResult> + '_>> {
                Box::pin(async move {
                    pass_async(hangs).await?;
                    self.1 = a;
                    Ok(self.1.value())
                })
            }

            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn owned(mut self, hangs: Hangs) -> impl Future<Output = CallResult> + use<> {
                self.0.0 = "changed";
                async move {
                    pass_async(hangs).await?;
                    Ok(self.0.value())
                }
            }
        }
    }

    in_traits [future] |hangs, log| async { table(log).scan(hangs, log.note("a")).await } => {
        trait Scan {
            fn scan(&self, hangs: Hangs, a: Noted) -> impl Future<Output = CallResult> + Send;

            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn provided(&self, hangs: Hangs, a: Noted) -> impl Future<Output = CallResult> + Send {
                async move {
                    pass_async(hangs).await?;
                    Ok(a.value())
                }
            }
        }

        impl Scan for Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn scan(&self, hangs: Hangs, a: Noted) -> impl Future<Output = CallResult> + Send {
                self.provided(hangs, a)
            }
        }
    }

    in_async_traits [future] |hangs, log| async {
        let table: &mut dyn Scan = &mut table(log);
        let first = table.scan(hangs, log.note("a"), (log.note("b"), log.note("c"))).await?;
        table.provided(hangs, "key").await.map(|second| first + second)
    } => {
        #[async_trait]
        trait Scan: Sync {
            async fn scan(&mut self, hangs: Hangs, a: Noted, of: (Noted, Noted)) -> CallResult;

            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            async fn provided(&self, hangs: Hangs, key: &str) -> CallResult {
                pass_async(hangs).await?;
                Ok(len(key))
            }
        }

        #[async_trait]
        impl Scan for Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            async fn scan(&mut self, hangs: Hangs, a: Noted, (b, _): (Noted, Noted)) -> CallResult {
                pass_async(hangs).await?;
                self.0.0 = "changed";
                Ok(self.0.value() + a.value() + b.value())
            }
        }
    }

    generic [future] |hangs, log| later(hangs, [log.note("a"), log.note("bb")], async { 3 }) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn later<T, const N: usize>(
            hangs: Hangs, all: [T; N], more: impl Future<Output = u32>,
        ) -> impl Future<Output = Result<u32, TimeoutError>>
        where
            T: Into<u32>,
        {
            async move {
                pass_async(hangs).await?;
                Ok(all.into_iter().map(Into::into).sum::<u32>() + more.await)
            }
        }
    }

    made_by_hand [future] |hangs, log| later(hangs, log.note("a"), log.note("b")) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn later(hangs: Hangs, a: Noted, b: Noted) -> impl future::Future<Output = CallResult> + Unpin {
            let mut passed = Box::pin(pass_async(hangs));
            drop(b);
            poll_fn(move |context| passed.as_mut().poll(context).map_ok(|()| a.value()))
        }
    }

    fallen_back [future] |hangs, log| later(hangs, log.note("a")) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run, fallback = |_| MISSED))]
        fn later(hangs: Hangs, a: Noted) -> Pin<Box<dyn Future<Output = u32> + Send>> {
            Box::pin(async move {
                let Ok(()) = pass_async(hangs).await else { return MISSED };
                a.value()
            })
        }
    }
}
