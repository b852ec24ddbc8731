//! Functions of every shape, each with one call of it.

mod check;

use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::sync::{Arc, LazyLock, Mutex};
use std::task::{Context, Waker};

use timeout_runtime::{CancelToken, Deadline, TimeoutError, timeout};
use tokio::runtime::Runtime;

use crate::support::{SOON, Way, block_on, runtime, short, until_cancelled};

/// A shape with one runner.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) way: Way,
    /// The module of the annotated function, which prefixes the names of its calls.
    pub(crate) path: &'static str,
    pub(crate) plain: Call,
    pub(crate) limited: Call,
}

/// Makes a call and returns its value, or `None` if it does not succeed.
type Call = fn(Hangs, &Log) -> Option<u32>;

/// Whether a call hangs, and what ends it then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hangs {
    Not,
    /// Returns when its token is cancelled.
    UntilCancelled,
    /// Waits until it is dropped.
    Forever,
}

/// Names of the dropped values, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<&'static str>>>);

impl Log {
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn note(&self, name: &'static str) -> Noted {
        Noted(name, self.clone())
    }
}

/// A value whose drop is logged.
#[derive(Debug)]
pub(crate) struct Noted(&'static str, pub(crate) Log);

impl Drop for Noted {
    fn drop(&mut self) {
        self.1.0.lock().unwrap().push(self.0);
    }
}

impl Noted {
    pub(crate) fn value(&self) -> u32 {
        len(self.0)
    }
}

impl From<Noted> for u32 {
    fn from(noted: Noted) -> Self {
        noted.value()
    }
}

fn len(text: &str) -> u32 {
    u32::try_from(text.len()).unwrap()
}

struct Request {
    id: Noted,
    #[allow(dead_code)] // Patterns leave this field out.
    rest: Noted,
}

fn request(log: &Log) -> Request {
    Request {
        id: log.note("id"),
        rest: log.note("rest"),
    }
}

pub(crate) type CallResult = Result<u32, TimeoutError>;

/// Value of a function without a `Result` that does not succeed.
const MISSED: u32 = u32::MAX;

/// Converts the return types of all shapes into one type.
pub(crate) trait Value {
    fn number(self) -> Option<u32>;
}

impl<T: Value, E> Value for Result<T, E> {
    fn number(self) -> Option<u32> {
        self.ok()?.number()
    }
}

impl<T: Value> Value for Option<T> {
    fn number(self) -> Option<u32> {
        self?.number()
    }
}

impl Value for u32 {
    fn number(self) -> Option<u32> {
        (self != MISSED).then_some(self)
    }
}

impl Value for Noted {
    fn number(self) -> Option<u32> {
        Some(u32::from(self))
    }
}

impl Value for &Noted {
    fn number(self) -> Option<u32> {
        Some(self.value())
    }
}

impl Value for &str {
    fn number(self) -> Option<u32> {
        Some(len(self))
    }
}

pub(crate) fn limit(hangs: Hangs) -> u64 {
    match hangs {
        Hangs::Not => u64::try_from(SOON.as_millis()).unwrap(),
        Hangs::UntilCancelled | Hangs::Forever => short(),
    }
}

/// Returns, or waits for the token if the call hangs.
/// Outside a call it cancels the token itself, to return the error of a limited call.
pub(crate) fn pass(hangs: Hangs) -> Result<(), TimeoutError> {
    if hangs == Hangs::Not {
        return Ok(());
    }
    let token = CancelToken::current();
    if token.deadline().remaining().is_none() {
        token.cancel();
    }
    until_cancelled(&token).map(drop)
}

/// Yields once, or waits if the call hangs.
pub(crate) async fn pass_async(hangs: Hangs) -> Result<(), TimeoutError> {
    match hangs {
        Hangs::Not => tokio::task::yield_now().await,
        Hangs::UntilCancelled => CancelToken::current().cancelled().await,
        Hangs::Forever => pending().await,
    }
    CancelToken::current().check()
}

/// A call of any type, so that the functions below are compiled once.
pub(crate) type Polled<'a> = Pin<&'a mut dyn Future<Output = Option<u32>>>;

/// Polls a call without a limit: to completion, or a few times if it hangs.
pub(crate) fn poll_plain(hangs: Hangs, mut call: Polled<'_>) -> Option<u32> {
    if hangs == Hangs::Not {
        return block_on(call);
    }
    for _ in 0..3 {
        let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "the call does not hang");
    }
    None
}

/// Polls a call with a limit to completion. Panics if that takes too long.
pub(crate) fn poll_limited(call: Polled<'_>) -> Option<u32> {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(runtime);
    let _inside = RUNTIME.enter();
    block_on(tokio::time::timeout(2 * SOON, call)).expect("the call never ended")
}

/// Defines a family of shapes, each with a name, its runners, a call and its items.
/// The items are emitted twice, with and without the attribute. The names in front stand for the
/// condition of the attribute and for its `run` option.
macro_rules! shapes {
    (@items $with:tt $($items:tt)*) => {
        macro_rules! items {
            $with => { $($items)* };
        }
    };

    (@way worker) => { Way::SyncWorker };
    (@way inline) => { Way::SyncInline };
    (@way async_inline) => { Way::AsyncInline };
    (@way async_task) => { Way::AsyncTask };
    (@way async_worker) => { Way::AsyncWorker };
    (@way future) => { Way::AsyncInline };

    (@worker $($call:tt)*) => { shapes! { @sync worker "worker" $($call)* } };
    (@inline $($call:tt)*) => { shapes! { @sync inline "inline" $($call)* } };
    (@async_inline $($call:tt)*) => { shapes! { @async async_inline "inline" $($call)* } };
    (@async_task $($call:tt)*) => { shapes! { @async async_task "task" $($call)* } };
    (@async_worker $($call:tt)*) => { shapes! { @async async_worker "worker" $($call)* } };
    (@future $($call:tt)*) => { shapes! { @async future "inline" $($call)* } };

    (@sync $way:ident $run:literal |$hangs:ident, $log:ident| $call:expr) => {
        shapes! { @twice $way $run |$hangs, $log| $call.number(), $call.number() }
    };
    (@async $way:ident $run:literal |$hangs:ident, $log:ident| $call:expr) => {
        shapes! {
            @twice $way $run |$hangs, $log|
            poll_plain($hangs, std::pin::pin!(async { $call.await.number() })),
            poll_limited(std::pin::pin!(async { $call.await.number() }))
        }
    };
    (@twice $way:ident $run:literal |$hangs:ident, $log:ident| $plain:expr, $limited:expr) => {
        pub(crate) mod $way {
            pub(crate) mod plain {
                use super::super::super::*;
                items!(any(), $run);
                pub(crate) fn call($hangs: Hangs, $log: &Log) -> Option<u32> {
                    $plain
                }
            }
            pub(crate) mod limited {
                use super::super::super::*;
                items!(all(), $run);
                pub(crate) const PATH: &str = module_path!();
                pub(crate) fn call($hangs: Hangs, $log: &Log) -> Option<u32> {
                    $limited
                }
            }
        }
    };

    ($with:tt $(
        $name:ident [$($way:ident)+] |$hangs:ident, $log:ident| $call:expr => { $($items:tt)* }
    )+) => {
        $(mod $name {
            shapes! { @items $with $($items)* }
            $(shapes! { @$way |$hangs, $log| $call })+
        })+

        pub(crate) const SHAPES: &[Shape] = &[$($(Shape {
            name: concat!(module_path!(), "::", stringify!($name)),
            way: shapes!(@way $way),
            path: $name::$way::limited::PATH,
            plain: $name::$way::plain::call,
            limited: $name::$way::limited::call,
        },)+)+];
    };
}

/// Declares the families and the table of their shapes.
/// A crate adds the shapes of its own edition in `crate::edition`.
macro_rules! families {
    ($($family:ident)*) => {
        $(mod $family;)*

        pub(crate) fn families() -> impl Iterator<Item = &'static Shape> {
            [$($family::SHAPES,)* crate::edition::SHAPES].into_iter().flatten()
        }
    };
}

families! { arguments patterns receivers traits generics bodies results futures pieces }
