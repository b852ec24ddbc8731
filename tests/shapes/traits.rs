//! Methods of traits and of their implementations.

#![allow(async_fn_in_trait)] // These futures need not be `Send`.

use std::fmt::Display;
use std::str::FromStr;

use super::*;

struct Table<T = u8>(Noted, T);

fn table(log: &Log) -> Table {
    Table(log.note("self"), 7)
}

shapes! { ($on:meta, $run:literal)
    implemented [worker inline] |hangs, log| table(log).scan(hangs, (log.note("a"), log.note("b"))) => {
        trait Scan {
            const COUNT: u32;

            fn scan(self, hangs: Hangs, of: (Noted, Noted)) -> CallResult;
        }

        impl<T: Into<u32> + Send + 'static> Scan for Table<T> {
            const COUNT: u32 = 5;

            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn scan(self, hangs: Hangs, (a, _): (Noted, Noted)) -> CallResult {
                pass(hangs)?;
                let Self(first, second) = self;
                Ok(a.value() + 10 * first.value() + second.into() + Self::COUNT)
            }
        }
    }

    provided [worker inline] |hangs, log| Arc::new(table(log)).provided(hangs, log.note("a")) => {
        trait Scan: Send + Sync + 'static {
            const COUNT: u32;

            fn named(&self) -> u32;

            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn provided(self: Arc<Self>, hangs: Hangs, a: Noted) -> CallResult {
                pass(hangs)?;
                Ok(a.value() + self.named() + Self::COUNT)
            }
        }

        impl<T: Send + Sync + 'static> Scan for Table<T> {
            const COUNT: u32 = 5;

            fn named(&self) -> u32 {
                self.0.value()
            }
        }
    }

    implemented_async [async_inline] |hangs, log| async { table(log).scan(hangs, log.note("a")).await } => {
        trait Scan {
            async fn scan(&self, hangs: Hangs, a: Noted) -> CallResult;
        }

        impl<T: Copy + Into<u32>> Scan for Table<T> {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            async fn scan(&self, hangs: Hangs, a: Noted) -> CallResult {
                pass_async(hangs).await?;
                Ok(a.value() + self.0.value() + self.1.into())
            }
        }
    }

    implemented_apart [async_task async_worker] |hangs, log| table(log).scan(hangs, log.note("a")) => {
        trait Scan {
            async fn scan(self, hangs: Hangs, a: Noted) -> CallResult;
        }

        impl<T: Copy + Into<u32> + Send + 'static> Scan for Table<T> {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            async fn scan(self, hangs: Hangs, a: Noted) -> CallResult {
                pass_async(hangs).await?;
                Ok(a.value() + self.0.value() + self.1.into())
            }
        }
    }

    provided_async [async_inline] |hangs, log| async { table(log).provided(hangs, log.note("a")).await } => {
        trait Scan {
            const COUNT: u32;

            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            async fn provided(&mut self, hangs: Hangs, a: Noted) -> CallResult {
                pass_async(hangs).await?;
                Ok(a.value() + self.more().await)
            }

            async fn more(&mut self) -> u32 {
                Self::COUNT
            }
        }

        impl<T> Scan for Table<T> {
            const COUNT: u32 = 5;
        }
    }

    without_receiver [worker inline] |hangs, log| <Table as Make<_>>::make(hangs, log.note("a"), 3_u8) => {
        trait Make<A> {
            type Made;

            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn make(hangs: Hangs, a: Noted, of: A) -> CallResult
            where
                A: Into<u32> + Send + 'static,
            {
                pass(hangs)?;
                Ok(a.value() + of.into() + u32::try_from(size_of::<Self::Made>()).unwrap())
            }
        }

        impl<A> Make<A> for Table {
            type Made = A;
        }
    }

    associated_types [worker inline] |hangs, log| table(log).row(hangs, log.note("a")) => {
        trait Rows {
            type Row;
            type Error;

            fn row(self, hangs: Hangs, a: Noted) -> Result<Self::Row, Self::Error>;
        }

        impl<T: Send + 'static> Rows for Table<T> {
            type Row = Noted;
            type Error = TimeoutError;

            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn row(self, hangs: Hangs, _a: Noted) -> Result<Self::Row, Self::Error> {
                pass(hangs)?;
                Ok(self.0)
            }
        }
    }

    of_a_trait_object [inline] |hangs, log| {
        let table: &mut dyn Scan = &mut table(log);
        table.scan(hangs, &log.note("a")).and_then(|scanned| Ok(scanned + table.own(hangs, log.note("bb"))?))
    } => {
        trait Scan {
            fn scan(&mut self, hangs: Hangs, a: &Noted) -> CallResult;
        }

        impl Scan for Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn scan(&mut self, hangs: Hangs, a: &Noted) -> CallResult {
                pass(hangs)?;
                self.0.0 = "changed";
                Ok(a.value() + self.0.value())
            }
        }

        impl dyn Scan + '_ {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn own(&mut self, hangs: Hangs, a: Noted) -> CallResult {
                self.scan(hangs, &a)
            }
        }
    }

    of_an_owned_trait_object [worker inline] |hangs, log| {
        let boxed: Box<dyn Scan> = Box::new(table(log));
        boxed.boxed(hangs, log.note("a")).and_then(|scanned| {
            let counted: Arc<dyn Scan> = Arc::new(table(log));
            Ok(scanned + counted.counted(hangs, log.note("bb"))?)
        })
    } => {
        trait Scan: Send + Sync {
            fn boxed(self: Box<Self>, hangs: Hangs, a: Noted) -> CallResult;
            fn counted(self: Arc<Self>, hangs: Hangs, a: Noted) -> CallResult;
        }

        impl Scan for Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn boxed(self: Box<Self>, hangs: Hangs, a: Noted) -> CallResult {
                pass(hangs)?;
                Ok(a.value() + self.0.value())
            }

            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn counted(self: Arc<Self>, hangs: Hangs, a: Noted) -> CallResult {
                pass(hangs)?;
                Ok(a.value() + self.0.value())
            }
        }
    }

    of_the_standard_library [inline] |hangs, log| {
        let mut rows = Rows(hangs, vec![log.note("a"), log.note("bb")]);
        let first = rows.next();
        first.and_then(|first| format!("{}:key", first.0).parse::<Key>().map(|key| key.0 + first.value()).ok())
    } => {
        struct Rows(Hangs, Vec<Noted>);

        impl Iterator for Rows {
            type Item = Noted;

            #[cfg_attr($on, timeout(ms = limit(self.0), run = $run))]
            fn next(&mut self) -> Option<Self::Item> {
                pass(self.0).ok()?;
                self.1.pop()
            }
        }

        struct Key(u32);

        impl FromStr for Key {
            type Err = TimeoutError;

            #[cfg_attr($on, timeout(secs = 60, run = $run))]
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let Some((name, key)) = text.split_once(':') else { return Ok(Self(0)) };
                Ok(Self(len(name) + 10 * len(key)))
            }
        }
    }

    of_every_type [worker inline] |hangs, log| 7_u8.shown(hangs, log.note("a"), [log.note("b")]) => {
        trait Shown: Sized {
            fn shown<A>(self, hangs: Hangs, a: A, rest: impl Send + 'static) -> CallResult
            where
                A: Into<u32> + Send + 'static;
        }

        impl<T: Display + Send + 'static> Shown for T {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn shown<A>(self, hangs: Hangs, a: A, _rest: impl Send + 'static) -> CallResult
            where
                A: Into<u32> + Send + 'static,
            {
                pass(hangs)?;
                Ok(len(&self.to_string()) + 10 * a.into())
            }
        }
    }

    of_a_generic_type [worker inline] |hangs, log| {
        Rows { rows: vec![log.note("a"), log.note("bb")].into_iter(), extra: log.note("extra") }.sum(hangs, [log.note("ccc")])
    } => {
        struct Rows<I: Iterator, X> {
            rows: I,
            extra: X,
        }

        impl<I, X> Rows<I, X>
        where
            I: Iterator<Item: Into<u32>> + Send + 'static,
            X: Into<I::Item> + Send + 'static,
        {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn sum<const N: usize>(self, hangs: Hangs, more: [<I as Iterator>::Item; N]) -> CallResult
            where
                I::Item: Send,
            {
                pass(hangs)?;
                let extra: I::Item = self.extra.into();
                Ok(self.rows.chain(more).chain([extra]).map(Into::into).sum())
            }
        }
    }
}
