//! Methods by receiver, and associated functions without one.

#![allow(clippy::boxed_local)] // The boxed receiver is under test.

use std::rc::Rc;

use super::*;

/// Defines a type for each method.
macro_rules! table {
    () => {
        #[allow(dead_code)] // Some methods read only one field.
        struct Table(Noted, Noted);

        fn table(log: &Log) -> Table {
            Table(log.note("self"), log.note("beside"))
        }
    };
}

shapes! { ($on:meta, $run:literal)
    no_receiver [worker inline] |hangs, log| Table::new(hangs, table(log), log.note("b")).map(|table| table.0) => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn new(hangs: Hangs, Self(a, ..): Self, b: Noted) -> Result<Self, TimeoutError> {
                pass(hangs)?;
                Ok(Self(a, b))
            }
        }
    }

    no_receiver_async [async_inline async_task async_worker] |hangs, log| async {
        Table::new(hangs, table(log), log.note("b")).await.map(|table| table.1)
    } => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            async fn new(hangs: Hangs, Self(a, ..): Self, b: Noted) -> Result<Self, TimeoutError> {
                pass_async(hangs).await?;
                Ok(Self(a, b))
            }
        }
    }

    owned [worker inline] |hangs, log| table(log).owned(hangs, log.note("a")) => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn owned(self, hangs: Hangs, a: Noted) -> CallResult {
                pass(hangs)?;
                Ok(self.0.value() + 10 * a.value())
            }
        }
    }

    owned_async [async_inline async_task async_worker] |hangs, log| table(log).owned(hangs, log.note("a")) => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            async fn owned(self, hangs: Hangs, a: Noted) -> CallResult {
                pass_async(hangs).await?;
                Ok(self.0.value() + 10 * a.value())
            }
        }
    }

    mutable [worker inline] |hangs, log| table(log).mutable(hangs, log.note("a")) => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn mutable(mut self, hangs: Hangs, a: Noted) -> CallResult {
                pass(hangs)?;
                self.0 = a.1.note("new");
                Ok(self.0.value() + 10 * a.value())
            }
        }
    }

    mutable_async [async_inline async_task async_worker] |hangs, log| table(log).mutable(hangs, log.note("a")) => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            async fn mutable(mut self, hangs: Hangs, a: Noted) -> CallResult {
                self.0 = a.1.note("new");
                pass_async(hangs).await?;
                self.1.0 = "changed";
                Ok(self.0.value() + 10 * a.value())
            }
        }
    }

    not_mentioned [worker inline] |hangs, log| table(log).not_mentioned(hangs, log.note("a")) => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn not_mentioned(self, hangs: Hangs, a: Noted) -> CallResult {
                let _local = a.1.note("local");
                pass(hangs)?;
                Ok(a.value())
            }
        }
    }

    not_mentioned_async [async_inline async_task async_worker] |hangs, log| table(
        log,
    ).not_mentioned(hangs, log.note("a")) => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            async fn not_mentioned(self, hangs: Hangs, a: Noted) -> CallResult {
                let _local = a.1.note("local");
                pass_async(hangs).await?;
                Ok(a.value())
            }
        }
    }

    taken_apart [worker inline] |hangs, log| table(log).taken_apart(hangs, log.note("a")) => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn taken_apart(self, hangs: Hangs, a: Noted) -> CallResult {
                let first = self.0;
                pass(hangs)?;
                drop(first);
                Ok(self.1.value() + 10 * a.value())
            }
        }
    }

    taken_apart_async [async_inline async_task async_worker] |hangs, log| table(
        log,
    ).taken_apart(hangs, log.note("a")) => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            async fn taken_apart(self, hangs: Hangs, a: Noted) -> CallResult {
                let Self(_, second) = self;
                pass_async(hangs).await?;
                drop(a);
                Ok(second.value())
            }
        }
    }

    boxed [worker inline] |hangs, log| Box::new(table(log)).boxed(hangs, log.note("a")) => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn boxed(mut self: Box<Self>, hangs: Hangs, a: Noted) -> CallResult {
                self.0.0 = "changed";
                pass(hangs)?;
                let Self(first, _) = *self;
                Ok(first.value() + 10 * a.value())
            }
        }
    }

    boxed_async [async_inline async_task async_worker] |hangs, log| Box::new(
        table(log),
    ).boxed(hangs, log.note("a")) => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            async fn boxed(mut self: Box<Self>, hangs: Hangs, a: Noted) -> CallResult {
                self.0.0 = "changed";
                pass_async(hangs).await?;
                Ok(self.0.value() + 10 * a.value())
            }
        }
    }

    counted [worker inline] |hangs, log| Arc::new(table(log)).counted(hangs, log.note("a")) => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn counted(mut self: Arc<Self>, hangs: Hangs, a: Noted) -> CallResult {
                pass(hangs)?;
                Arc::get_mut(&mut self).unwrap().0.0 = "changed";
                Ok(self.0.value() + 10 * a.value())
            }
        }
    }

    counted_async [async_inline async_task async_worker] |hangs, log| Arc::new(
        table(log),
    ).counted(hangs, log.note("a")) => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            async fn counted(self: Arc<Self>, hangs: Hangs, a: Noted) -> CallResult {
                pass_async(hangs).await?;
                Ok(self.0.value() + 10 * a.value())
            }
        }
    }

    pinned_box [worker inline] |hangs, log| Box::pin(table(log)).pinned(hangs, log.note("a")) => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn pinned(mut self: Pin<Box<Self>>, hangs: Hangs, a: Noted) -> CallResult {
                pass(hangs)?;
                self.as_mut().get_mut().0.0 = a.0;
                Ok(self.0.value() + 10 * self.1.value())
            }
        }
    }

    spelled_out [worker inline] |hangs, log| table(log).spelled(hangs, log.note("a")) => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn spelled(#[cfg(not(any()))] #[allow(unused_mut)] mut self: Self, hangs: Hangs, a: Noted) -> CallResult {
                pass(hangs)?;
                Ok(self.0.value() + 10 * a.value())
            }
        }
    }

    borrowed_for_good [worker inline] |hangs, log| Table::SHARED.shared(hangs, log.note("a")) => {
        struct Table(u32);

        impl Table {
            const SHARED: &Self = &Self(7);

            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn shared(&'static self, hangs: Hangs, a: Noted) -> CallResult {
                pass(hangs)?;
                Ok(self.0 + 10 * a.value())
            }
        }
    }

    shared [inline] |hangs, log| table(log).shared(hangs, log.note("a")) => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn shared(&self, hangs: Hangs, a: Noted) -> CallResult {
                pass(hangs)?;
                Ok(self.0.value() + 10 * a.value())
            }
        }
    }

    shared_async [async_inline] |hangs, log| async { table(log).shared(hangs, log.note("a"), "key").await } => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            async fn shared(&self, hangs: Hangs, a: Noted, key: &str) -> CallResult {
                pass_async(hangs).await?;
                Ok(self.0.value() + 10 * a.value() + len(key))
            }
        }
    }

    changed [inline] |hangs, log| table(log).changed(hangs, log.note("other")) => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn changed(&mut self, hangs: Hangs, a: Noted) -> CallResult {
                pass(hangs)?;
                std::mem::swap(&mut self.0, &mut self.1);
                self.0 = a;
                Ok(self.0.value() + 10 * self.1.value())
            }
        }
    }

    changed_async [async_inline] |hangs, log| async { table(log).changed(hangs, log.note("other")).await } => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            async fn changed(&mut self, hangs: Hangs, a: Noted) -> CallResult {
                std::mem::swap(&mut self.0, &mut self.1);
                pass_async(hangs).await?;
                self.0 = a;
                Ok(self.0.value() + 10 * self.1.value())
            }
        }
    }

    named_lifetime [inline] |hangs, log| table(log).longer(hangs, &log.note("a")).number() => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn longer<'a>(self: &'a mut Self, hangs: Hangs, a: &'a Noted) -> Result<&'a Noted, TimeoutError> {
                pass(hangs)?;
                self.0.0 = "changed";
                Ok(if a.value() > 3 { a } else { &self.0 })
            }
        }
    }

    typed_borrows [inline] |hangs, log| {
        let (mut boxed, counted) = (Box::new(table(log)), Arc::new(table(log)));
        boxed.boxed(hangs, log.note("a")).and_then(|first| Ok(first + counted.counted(hangs, log.note("bb"))?))
    } => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn boxed(self: &mut Box<Self>, hangs: Hangs, a: Noted) -> CallResult {
                pass(hangs)?;
                self.0.0 = a.0;
                Ok(self.0.value() + 10 * self.1.value())
            }

            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn counted(self: &Arc<Self>, hangs: Hangs, a: Noted) -> CallResult {
                pass(hangs)?;
                Ok(u32::try_from(Arc::strong_count(self)).unwrap() + a.value())
            }
        }
    }

    counted_here [inline] |hangs, log| Rc::new(table(log)).counted(hangs, log.note("a")) => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn counted(self: Rc<Self>, hangs: Hangs, a: Noted) -> CallResult {
                pass(hangs)?;
                Ok(self.0.value() + 10 * a.value())
            }
        }
    }

    counted_here_async [async_inline] |hangs, log| Rc::new(table(log)).counted(hangs, log.note("a")) => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            async fn counted(self: Rc<Self>, hangs: Hangs, a: Noted) -> CallResult {
                pass_async(hangs).await?;
                Ok(self.0.value() + 10 * a.value())
            }
        }
    }

    pinned [inline] |hangs, log| pin!(table(log)).pinned(hangs, log.note("a")) => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn pinned(mut self: Pin<&mut Self>, hangs: Hangs, a: Noted) -> CallResult {
                pass(hangs)?;
                self.as_mut().get_mut().0.0 = a.0;
                Ok(self.0.value() + 10 * a.value())
            }
        }
    }

    pinned_async [async_inline] |hangs, log| async { pin!(table(log)).pinned(hangs, log.note("a")).await } => {
        table! {}

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            async fn pinned(mut self: Pin<&mut Self>, hangs: Hangs, a: Noted) -> CallResult {
                self.as_mut().get_mut().0.0 = a.0;
                pass_async(hangs).await?;
                Ok(self.0.value() + 10 * a.value())
            }
        }
    }

    asked_by_options [inline] |hangs, log| table(log).options(hangs, log.note("a")) => {
        table! {}

        impl Table {
            fn limit(&mut self, hangs: Hangs) -> u64 {
                self.1.0 = "asked";
                limit(hangs)
            }

            #[cfg_attr($on, timeout(ms = self.limit(hangs), run = $run))]
            fn options(mut self, hangs: Hangs, a: Noted) -> CallResult {
                self.limit(hangs);
                pass(hangs)?;
                Ok(self.1.value() + 10 * a.value())
            }
        }
    }
}
