//! A function of any shape does with the attribute what it does without: the same value, the same drops in the same order. And
//! where it hangs, it times out.

mod support;

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use support::{block_on, eventually, in_runtime, until_fired};
use timeout_runtime::{CancelToken, TimeoutError, timeout};

type Answer = Result<u32, TimeoutError>;

/// What was dropped, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<&'static str>>>);

impl Log {
    fn note(&self, name: &'static str) -> Noted {
        Noted(name, self.clone())
    }

    fn names(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().clone()
    }
}

/// A value whose drop is noted.
pub(crate) struct Noted(&'static str, Log);

impl Drop for Noted {
    fn drop(&mut self) {
        self.1.0.lock().unwrap().push(self.0);
    }
}

impl Noted {
    fn value(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap()
    }
}

impl From<Noted> for u32 {
    fn from(noted: Noted) -> Self {
        noted.value()
    }
}

pub(crate) struct Request {
    id: Noted,
    #[allow(dead_code)] // A field that patterns leave out.
    rest: Noted,
}

fn limit(hangs: bool) -> u64 {
    if hangs { 30 } else { 60_000 }
}

/// An operation that hangs waits for its token. Outside a call it fails at once, as the other does in the end.
fn pass(hangs: bool) -> Result<(), TimeoutError> {
    let token = CancelToken::current();
    if hangs {
        if token.deadline().remaining().is_none() {
            token.cancel();
        }
        until_fired(&token)?;
    }
    Ok(())
}

async fn pass_async(hangs: bool) {
    if hangs {
        std::future::pending::<()>().await;
    }
    let mut first = true;
    std::future::poll_fn(|context| {
        context.waker().wake_by_ref();
        if std::mem::take(&mut first) {
            std::task::Poll::Pending
        } else {
            std::task::Poll::Ready(())
        }
    })
    .await;
}

/// The same for an operation that nobody drops: it has to leave by itself.
async fn pass_apart(hangs: bool) -> Result<(), TimeoutError> {
    if hangs {
        CancelToken::current().cancelled().await;
    }
    CancelToken::current().check()
}

/// The shapes of functions that run on a worker.
macro_rules! on_workers {
    ($on:meta) => {
        use super::super::*;

        #[cfg_attr($on, timeout(ms = limit(hangs)))]
        pub(crate) fn free(
            hangs: bool,
            a: Noted,
            (b, _): (Noted, Noted),
            _: Noted,
            mut c: Noted,
            _unused: Noted,
            Request { id, .. }: Request,
        ) -> Answer {
            let local = a.1.note("local");
            pass(hangs)?;
            c.0 = "changed";
            Ok(a.value() + b.value() + c.value() + id.value() + local.value())
        }

        #[cfg_attr($on, timeout(ms = limit(hangs)))]
        pub(crate) fn generic<T, const N: usize>(hangs: bool, all: [T; N], one: T) -> Answer
        where
            T: Into<u32> + Send + 'static,
        {
            pass(hangs)?;
            Ok(one.into() + all.into_iter().map(Into::into).sum::<u32>())
        }

        #[cfg_attr($on, timeout(ms = limit(hangs)))]
        pub(crate) fn hidden(
            hangs: bool,
            of: impl Into<u32> + Send + 'static,
            by: impl FnOnce(u32) -> Noted + Send + 'static,
        ) -> Result<impl Into<u32>, TimeoutError> {
            pass(hangs)?;
            Ok(by(of.into()))
        }

        #[cfg_attr($on, timeout(ms = limit(hangs)))]
        pub(crate) fn leaves_early(hangs: bool, a: Noted, b: Noted) -> Answer {
            if a.value() == b.value() {
                return Ok(0);
            }
            pass(hangs)?;
            let found = 'rows: loop {
                let _inner = a.1.note("inner");
                for row in 0.. {
                    if row == 3 {
                        continue;
                    }
                    if row == 5 {
                        break 'rows row;
                    }
                }
            };
            drop(a);
            return Ok(found);
        }

        #[cfg_attr($on, timeout(ms = limit(hangs)))]
        pub(crate) fn never_falls_through(hangs: bool, a: Noted) -> Answer {
            pass(hangs)?;
            match a.value() {
                1 => Ok(7),
                _ => unreachable!("{}", a.0),
            }
        }

        #[cfg_attr($on, timeout(ms = limit(hangs)))]
        pub(crate) fn recursive(hangs: bool, depth: u32, a: Noted) -> Answer {
            pass(hangs)?;
            let deeper = a.1.note("deeper");
            Ok(match depth {
                0 => 0,
                _ => 1 + recursive(hangs, depth - 1, deeper)?,
            })
        }

        #[cfg_attr($on, timeout(ms = limit(hangs)))]
        pub(crate) fn conditional(
            hangs: bool,
            #[cfg(any())] gone: Missing,
            #[cfg(not(any()))] here: Noted,
            #[cfg_attr(all(), allow(unused_variables))] unused: Noted,
            #[allow(unused_mut)] mut a: Noted,
        ) -> Answer {
            pass(hangs)?;
            Ok(here.value() + a.value())
        }

        #[cfg_attr($on, timeout(ms = limit(hangs)))]
        pub(crate) fn r#match(hangs: bool, r#type: Noted) -> Answer {
            pass(hangs)?;
            Ok(r#type.value())
        }

        #[cfg_attr($on, timeout(ms = limit(hangs)))]
        pub(crate) fn locks(hangs: bool, a: Noted, lock: Mutex<u32>) -> Answer {
            pass(hangs)?;
            let _ = a.value();
            Ok(*lock.lock().unwrap())
        }

        pub(crate) struct Table<T>(pub(crate) Noted, pub(crate) T);

        impl<T: Into<u32> + Clone + Send + Sync + 'static> Table<T> {
            #[cfg_attr($on, timeout(ms = limit(hangs)))]
            pub(crate) fn associated(hangs: bool, a: Noted, of: T) -> Answer {
                pass(hangs)?;
                Ok(a.value() + of.into())
            }

            #[cfg_attr($on, timeout(ms = limit(hangs)))]
            pub(crate) fn owned(mut self, hangs: bool, a: Noted) -> Answer {
                pass(hangs)?;
                self.0.0 = "changed";
                Ok(self.0.value() + a.value())
            }

            #[cfg_attr($on, timeout(ms = limit(hangs)))]
            pub(crate) fn not_mentioned(self, hangs: bool, a: Noted) -> Answer {
                pass(hangs)?;
                Ok(a.value())
            }

            #[cfg_attr($on, timeout(ms = limit(hangs)))]
            pub(crate) fn shared(self: Arc<Self>, hangs: bool, a: Noted) -> Answer {
                pass(hangs)?;
                Ok(self.0.value() + a.value() + self.1.clone().into())
            }

            #[cfg_attr($on, timeout(ms = limit(hangs)))]
            #[allow(clippy::boxed_local)] // The receiver is the point.
            pub(crate) fn boxed(self: Box<Self>, hangs: bool, a: Noted) -> Answer {
                pass(hangs)?;
                Ok(self.0.value() + a.value())
            }
        }

        pub(crate) trait Scan: Send + Sync + Sized + 'static {
            const COUNT: u32;

            fn scan(self: Arc<Self>, hangs: bool, a: Noted) -> Answer;

            #[cfg_attr($on, timeout(ms = limit(hangs)))]
            fn provided(self: Arc<Self>, hangs: bool, a: Noted) -> Answer {
                pass(hangs)?;
                Ok(a.value() + Self::COUNT)
            }
        }

        impl<T: Send + Sync + 'static> Scan for Table<T> {
            const COUNT: u32 = 5;

            #[cfg_attr($on, timeout(ms = limit(hangs)))]
            fn scan(self: Arc<Self>, hangs: bool, a: Noted) -> Answer {
                pass(hangs)?;
                Ok(a.value() + self.0.value() + Self::COUNT)
            }
        }
    };
}

/// The shapes of functions that run where their caller is.
macro_rules! in_place {
    ($on:meta) => {
        use super::super::*;

        #[cfg_attr($on, timeout(ms = limit(hangs), run = "inline"))]
        pub(crate) fn borrows<'a>(
            hangs: bool,
            a: &'a Noted,
            Request { id, .. }: &mut Request,
            b: Noted,
            _: Noted,
        ) -> Result<&'a Noted, TimeoutError> {
            let _local = b.1.note("local");
            pass(hangs)?;
            id.0 = "changed";
            Ok(a)
        }

        pub(crate) struct Table(pub(crate) Noted);

        impl Table {
            #[cfg_attr($on, timeout(ms = limit(hangs), run = "inline"))]
            pub(crate) fn shared(&self, hangs: bool, a: Noted) -> Answer {
                pass(hangs)?;
                Ok(self.0.value() + a.value())
            }

            #[cfg_attr($on, timeout(ms = limit(hangs), run = "inline"))]
            pub(crate) fn changed(&mut self, hangs: bool, a: Noted) -> Answer {
                pass(hangs)?;
                self.0.0 = a.0;
                Ok(self.0.value())
            }

            #[cfg_attr($on, timeout(ms = limit(hangs), run = "inline"))]
            pub(crate) fn pinned(self: Pin<&mut Self>, hangs: bool, a: Noted) -> Answer {
                pass(hangs)?;
                Ok(self.0.value() + a.value())
            }

            #[cfg_attr($on, timeout(ms = limit(hangs), run = "inline"))]
            pub(crate) fn counted(self: &Arc<Self>, hangs: bool, a: Noted) -> Answer {
                pass(hangs)?;
                Ok(u32::try_from(Arc::strong_count(self)).unwrap() + a.value())
            }

            #[cfg_attr($on, timeout(ms = limit(hangs), run = "inline"))]
            pub(crate) fn by(&self, hangs: bool, make: &mut dyn FnMut(u32) -> Noted) -> Answer {
                pass(hangs)?;
                Ok(make(self.0.value()).value())
            }
        }
    };
}

/// The shapes of async functions.
macro_rules! async_functions {
    ($on:meta) => {
        use super::super::*;

        #[cfg_attr($on, timeout(ms = limit(hangs)))]
        pub(crate) async fn free(
            hangs: bool,
            a: &Noted,
            (b, _): (Noted, Noted),
            _: Noted,
            mut c: Noted,
            _unused: Noted,
            Request { id, .. }: Request,
        ) -> Answer {
            let local = a.1.note("local");
            pass_async(hangs).await;
            c.0 = "changed";
            Ok(a.value() + b.value() + c.value() + id.value() + local.value())
        }

        #[cfg_attr($on, timeout(ms = limit(hangs)))]
        pub(crate) async fn generic<T, const N: usize>(
            hangs: bool,
            all: &[T; N],
            one: impl Into<u32>,
        ) -> Result<&T, TimeoutError>
        where
            T: PartialEq<u32>,
        {
            pass_async(hangs).await;
            let one = one.into();
            Ok(all.iter().find(|value| **value == one).unwrap())
        }

        #[cfg_attr($on, timeout(ms = limit(hangs)))]
        pub(crate) async fn leaves_early(hangs: bool, a: Noted, b: Noted) -> Answer {
            if a.value() == b.value() {
                return Ok(0);
            }
            let found = 'rows: loop {
                let _inner = a.1.note("inner");
                pass_async(hangs).await;
                for row in 0.. {
                    if row == 5 {
                        break 'rows row;
                    }
                }
            };
            drop(a);
            return Ok(found);
        }

        #[cfg_attr($on, timeout(ms = limit(hangs)))]
        pub(crate) async fn recursive(hangs: bool, depth: u32, a: Noted) -> Answer {
            pass_async(hangs).await;
            let deeper = a.1.note("deeper");
            Ok(match depth {
                0 => 0,
                _ => 1 + Box::pin(recursive(hangs, depth - 1, deeper)).await?,
            })
        }

        #[cfg_attr($on, timeout(ms = limit(hangs)))]
        pub(crate) async fn conditional<#[cfg(any())] Gone: Missing, #[cfg(not(any()))] Here>(
            hangs: bool,
            #[cfg(any())] gone: &Missing,
            #[cfg(not(any()))] here: &Here,
            #[cfg_attr(all(), allow(unused_variables))] unused: Noted,
            #[cfg(not(any()))] key: &str,
        ) -> Answer
        where
            Here: AsRef<str>,
        {
            pass_async(hangs).await;
            Ok(u32::try_from(here.as_ref().len() + key.len()).unwrap())
        }

        #[cfg_attr($on, timeout(ms = limit(hangs), run = "task"))]
        pub(crate) async fn task(hangs: bool, a: Noted, (b, _): (Noted, Noted)) -> Answer {
            pass_apart(hangs).await?;
            Ok(a.value() + b.value())
        }

        #[cfg_attr($on, timeout(ms = limit(hangs), run = "worker"))]
        pub(crate) async fn worker(hangs: bool, a: Noted, (b, _): (Noted, Noted)) -> Answer {
            let local = std::rc::Rc::new(a.1.note("local"));
            pass_apart(hangs).await?;
            Ok(a.value() + b.value() + local.value())
        }

        pub(crate) struct Table<T>(pub(crate) Noted, pub(crate) T);

        impl<T: Send> Table<T> {
            #[cfg_attr($on, timeout(ms = limit(hangs)))]
            pub(crate) async fn shared(&self, hangs: bool, a: Noted, key: &str) -> Answer {
                pass_async(hangs).await;
                Ok(self.0.value() + a.value() + u32::try_from(key.len()).unwrap())
            }

            #[cfg_attr($on, timeout(ms = limit(hangs)))]
            pub(crate) async fn changed(&mut self, hangs: bool, a: &mut Noted) -> Answer {
                pass_async(hangs).await;
                self.0.0 = a.0;
                Ok(self.0.value())
            }

            #[cfg_attr($on, timeout(ms = limit(hangs)))]
            pub(crate) async fn owned(mut self, hangs: bool, a: Noted) -> Answer {
                pass_async(hangs).await;
                self.0.0 = "changed";
                Ok(self.0.value() + a.value())
            }

            #[cfg_attr($on, timeout(ms = limit(hangs)))]
            pub(crate) async fn not_mentioned(self, hangs: bool, a: Noted) -> Answer {
                pass_async(hangs).await;
                Ok(a.value())
            }

            #[cfg_attr($on, timeout(ms = limit(hangs)))]
            pub(crate) async fn counted(self: Arc<Self>, hangs: bool, a: Noted) -> Answer {
                pass_async(hangs).await;
                Ok(self.0.value() + a.value())
            }

            #[cfg_attr($on, timeout(ms = limit(hangs)))]
            pub(crate) async fn pinned(self: Pin<&mut Self>, hangs: bool, a: Noted) -> Answer {
                pass_async(hangs).await;
                Ok(self.0.value() + a.value())
            }
        }

        pub(crate) trait Scan {
            const COUNT: u32;

            #[allow(async_fn_in_trait)] // Nobody sends these futures.
            async fn scan(&self, hangs: bool, a: Noted) -> Answer;

            #[allow(async_fn_in_trait)] // Nobody sends these futures.
            #[cfg_attr($on, timeout(ms = limit(hangs)))]
            async fn provided(&mut self, hangs: bool, a: Noted) -> Answer {
                pass_async(hangs).await;
                Ok(a.value() + Self::COUNT)
            }
        }

        impl<T> Scan for Table<T> {
            const COUNT: u32 = 5;

            #[cfg_attr($on, timeout(ms = limit(hangs)))]
            async fn scan(&self, hangs: bool, a: Noted) -> Answer {
                pass_async(hangs).await;
                Ok(a.value() + self.0.value() + Self::COUNT)
            }
        }
    };
}

/// Each family twice: without the attribute, and with it.
macro_rules! twice {
    ($($family:ident)*) => {$(
        mod $family {
            pub(crate) mod plain {
                $family!(any());
            }
            pub(crate) mod limited {
                $family!(all());
            }
        }
    )*};
}

twice!(on_workers in_place async_functions);

/// Compares one call of each of the two.
#[track_caller]
fn compare(
    call: &str,
    plain: impl Fn(bool, &Log) -> Answer,
    limited: impl Fn(bool, &Log) -> Answer,
) {
    for hangs in [false, true] {
        let (expected, log) = (Log::default(), Log::default());
        match (plain(hangs, &expected), limited(hangs, &log)) {
            (Ok(expected), Ok(value)) => assert_eq!(value, expected, "{call}"),
            (Err(_), Err(error)) => assert!(hangs && error.is_timed_out(), "{call}: {error:?}"),
            (expected, ending) => panic!("{call}: {ending:?} in place of {expected:?}"),
        }
        // An operation elsewhere may lag behind its caller.
        eventually("everything is dropped", || {
            log.names().len() >= expected.names().len()
        });
        assert_eq!(log.names(), expected.names(), "{call}, hangs: {hangs}");
    }
}

macro_rules! same {
    ($family:ident: $(|$hangs:ident, $log:ident| $call:expr;)*) => {$(
        compare(
            stringify!($call),
            |$hangs, $log| {
                #[allow(unused_imports)] // Not every call names a function or a trait.
                use $family::plain::*;
                $call
            },
            |$hangs, $log| {
                #[allow(unused_imports)] // As above.
                use $family::limited::*;
                $call
            },
        );
    )*};
}

#[test]
fn functions_on_workers() {
    same! { on_workers:
        |hangs, log| free(
            hangs,
            log.note("a"),
            (log.note("b"), log.note("not bound")),
            log.note("unnamed"),
            log.note("c"),
            log.note("unused"),
            Request { id: log.note("id"), rest: log.note("rest") },
        );
        |hangs, log| generic(hangs, [log.note("a"), log.note("bb")], log.note("one"));
        |hangs, log| {
            let make = log.note("of the closure");
            let of = log.note("of");
            let log = log.clone();
            let by = move |value| {
                assert_eq!(value, 2);
                drop(make);
                log.note("made")
            };
            hidden(hangs, of, by).map(Into::into)
        };
        |hangs, log| leaves_early(hangs, log.note("a"), log.note("bb"));
        |_hangs, log| leaves_early(true, log.note("a"), log.note("b"));
        |hangs, log| never_falls_through(hangs, log.note("a"));
        |hangs, log| recursive(hangs, 3, log.note("a"));
        |hangs, log| conditional(hangs, log.note("here"), log.note("unused"), log.note("a"));
        |hangs, log| r#match(hangs, log.note("type"));
        |hangs, log| locks(hangs, log.note("a"), Mutex::new(7));
        |hangs, log| Table::associated(hangs, log.note("a"), 7_u8);
        |hangs, log| Table(log.note("self"), 7_u8).owned(hangs, log.note("a"));
        |hangs, log| Table(log.note("self"), 7_u8).not_mentioned(hangs, log.note("a"));
        |hangs, log| Arc::new(Table(log.note("self"), 7_u8)).shared(hangs, log.note("a"));
        |hangs, log| Box::new(Table(log.note("self"), 7_u8)).boxed(hangs, log.note("a"));
        |hangs, log| Arc::new(Table(log.note("self"), 7_u8)).scan(hangs, log.note("a"));
        |hangs, log| Arc::new(Table(log.note("self"), 7_u8)).provided(hangs, log.note("a"));
    }
}

#[test]
fn functions_in_place() {
    same! { in_place:
        |hangs, log| {
            let a = log.note("a");
            let mut request = Request { id: log.note("id"), rest: log.note("rest") };
            let answer = borrows(hangs, &a, &mut request, log.note("b"), log.note("unnamed"));
            answer.map(Noted::value)
        };
        |hangs, log| Table(log.note("self")).shared(hangs, log.note("a"));
        |hangs, log| Table(log.note("self")).changed(hangs, log.note("other"));
        |hangs, log| pin!(Table(log.note("self"))).pinned(hangs, log.note("a"));
        |hangs, log| Arc::new(Table(log.note("self"))).counted(hangs, log.note("a"));
        |hangs, log| Table(log.note("self")).by(hangs, &mut |_| log.note("made"));
    }
}

/// Polls `call` to its end; one that hangs outside a call is dropped after the first poll.
fn run(hangs: bool, is_limited: bool, call: impl Future<Output = Answer>) -> Answer {
    if hangs && !is_limited {
        let mut call = Box::pin(call);
        let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        drop(call);
        let token = CancelToken::new();
        token.cancel();
        return token.check().map(|()| 0);
    }
    block_on(call)
}

macro_rules! same_async {
    ($(|$hangs:ident, $log:ident| $call:expr;)*) => {$(
        compare(
            stringify!($call),
            |$hangs, $log| {
                #[allow(unused_imports)] // Not every call names a function or a trait.
                use async_functions::plain::*;
                run($hangs, false, async { $call.await })
            },
            |$hangs, $log| {
                #[allow(unused_imports)] // As above.
                use async_functions::limited::*;
                in_runtime(async { run($hangs, true, async { $call.await }) })
            },
        );
    )*};
}

#[test]
fn async_functions_of_every_shape() {
    same_async! {
        |hangs, log| free(
            hangs,
            &log.note("a"),
            (log.note("b"), log.note("not bound")),
            log.note("unnamed"),
            log.note("c"),
            log.note("unused"),
            Request { id: log.note("id"), rest: log.note("rest") },
        );
        |hangs, log| async { generic(hangs, &[1, 2, 3], log.note("bb")).await.copied() };
        |hangs, log| leaves_early(hangs, log.note("a"), log.note("bb"));
        |hangs, log| recursive(hangs, 3, log.note("a"));
        |hangs, log| conditional(hangs, &"here".to_owned(), log.note("unused"), "key");
        |hangs, log| task(hangs, log.note("a"), (log.note("b"), log.note("not bound")));
        |hangs, log| worker(hangs, log.note("a"), (log.note("b"), log.note("not bound")));
        |hangs, log| Table(log.note("self"), ()).shared(hangs, log.note("a"), "key");
        |hangs, log| Table(log.note("self"), ()).changed(hangs, &mut log.note("other"));
        |hangs, log| Table(log.note("self"), ()).owned(hangs, log.note("a"));
        |hangs, log| Table(log.note("self"), ()).not_mentioned(hangs, log.note("a"));
        |hangs, log| Arc::new(Table(log.note("self"), ())).counted(hangs, log.note("a"));
        |hangs, log| async { pin!(Table(log.note("self"), ())).pinned(hangs, log.note("a")).await };
        |hangs, log| Table(log.note("self"), ()).scan(hangs, log.note("a"));
        |hangs, log| Table(log.note("self"), ()).provided(hangs, log.note("a"));
    }
}
