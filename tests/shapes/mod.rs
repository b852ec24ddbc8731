//! The corpus: functions of every shape, each with one call of it.

mod check;

use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::sync::{Arc, LazyLock, Mutex};
use std::task::{Context, Waker};

use timeout_runtime::{CancelToken, Deadline, TimeoutError, timeout};
use tokio::runtime::Runtime;

use crate::support::{SOON, Way, block_on, runtime, short, until_fired};

/// A shape, and one way to run it.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) way: Way,
    /// The module of the function with the attribute, which names its calls.
    pub(crate) path: &'static str,
    pub(crate) plain: Call,
    pub(crate) limited: Call,
}

/// What the call comes to, or `None` if it does not come to its end.
type Call = fn(Hangs, &Log) -> Option<u32>;

/// Whether a call comes to its end, and what ends it if not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hangs {
    Not,
    /// It leaves once its token has fired.
    UntilTold,
    /// It waits until somebody drops it.
    Forever,
}

/// What was dropped, in order.
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

/// A value whose drop is noted.
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
    #[allow(dead_code)] // A field that patterns leave out.
    rest: Noted,
}

fn request(log: &Log) -> Request {
    Request {
        id: log.note("id"),
        rest: log.note("rest"),
    }
}

pub(crate) type Answer = Result<u32, TimeoutError>;

/// What a function without a `Result` gives when it does not come to its end.
const MISSED: u32 = u32::MAX;

/// What functions return, as one type.
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
        Hangs::UntilTold | Hangs::Forever => short(),
    }
}

/// Waits for the token if it is to hang. Outside a call it fails at once, as the other does in the end.
pub(crate) fn pass(hangs: Hangs) -> Result<(), TimeoutError> {
    if hangs == Hangs::Not {
        return Ok(());
    }
    let token = CancelToken::current();
    if token.deadline().remaining().is_none() {
        token.cancel();
    }
    until_fired(&token).map(drop)
}

/// Gives way once, or waits.
pub(crate) async fn pass_async(hangs: Hangs) -> Result<(), TimeoutError> {
    match hangs {
        Hangs::Not => tokio::task::yield_now().await,
        Hangs::UntilTold => CancelToken::current().cancelled().await,
        Hangs::Forever => pending().await,
    }
    CancelToken::current().check()
}

/// Polls a call that nothing limits: to its end, or, if it hangs, for a while.
pub(crate) fn poll_plain<T>(hangs: Hangs, call: impl Future<Output = Option<T>>) -> Option<T> {
    if hangs == Hangs::Not {
        return block_on(call);
    }
    let mut call = pin!(call);
    for _ in 0..3 {
        let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "it does not hang");
    }
    None
}

/// Polls a call that has a limit to its end; panics if that takes too long.
pub(crate) fn poll_limited<T>(call: impl Future<Output = Option<T>>) -> Option<T> {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(runtime);
    let _inside = RUNTIME.enter();
    block_on(tokio::time::timeout(2 * SOON, call)).expect("the call never ended")
}

/// A family of shapes: of each its name, the ways to run it, a call, and its items, which are there once without the attribute and once with
/// it. They find the condition of the attribute, and where to run, under the names that stand in front.
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
            poll_plain($hangs, async { $call.await.number() }),
            poll_limited(async { $call.await.number() })
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

/// The families, none of which can be left out of the table. What one edition alone can compile, the crate brings itself.
macro_rules! families {
    ($($family:ident)*) => {
        $(mod $family;)*

        pub(crate) fn families() -> impl Iterator<Item = &'static Shape> {
            [$($family::SHAPES,)* crate::edition::SHAPES].into_iter().flatten()
        }
    };
}

families! { arguments patterns receivers traits generics bodies answers futures pieces }
