//! `#[tracing::instrument]` above and below `#[timeout]`: the span covers the operation and has the
//! fields of the plain function.

use crate::support;
use std::cell::Cell;
use std::fmt::{self, Debug, Formatter, Write};
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use async_trait::async_trait;
use support::block_on;
use timeout_runtime::integrations::tracing::propagate_spans;
use timeout_runtime::{CancelToken, TimeoutError, timeout};
use tracing::field::{Field, Visit};
use tracing::instrument;
use tracing::span::{Attributes, Id};
use tracing::{Event, Subscriber, info};
use tracing_subscriber::Registry;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

type CallResult = Result<u32, TimeoutError>;

/// Has no `Debug`, like arguments that no span records.
struct Opaque(u32);

struct Parts {
    id: u32,
    rest: Opaque,
}

thread_local! {
    static LIMIT: Cell<Duration> = const { Cell::new(Duration::from_secs(60)) };
}

/// Spans and events in order, each event with its enclosing spans.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Log {
    fn on_new_span(&self, span: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        let mut text = format!("span {}", span.metadata().name());
        span.record(&mut Fields(&mut text));
        self.0.lock().unwrap().push(text);
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let spans = context.event_scope(event).into_iter().flatten();
        let spans: Vec<_> = spans.map(|span| span.name()).collect();
        let mut text = format!("in {}:", spans.join(" in "));
        event.record(&mut Fields(&mut text));
        self.0.lock().unwrap().push(text);
    }
}

struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

/// Returns the log of a call and its result.
fn recorded(limit: Duration, call: impl FnOnce() -> CallResult) -> (Vec<String>, CallResult) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| propagate_spans().forget());
    LIMIT.set(limit);
    let log = Log::default();
    let result = tracing::subscriber::with_default(Registry::default().with(log.clone()), call);
    let seen = log.0.lock().unwrap().clone();
    (seen, result)
}

fn length(name: &str) -> u32 {
    u32::try_from(name.len()).unwrap()
}

/// An operation that logs one event, and then returns `value` or never ends.
async fn work(hangs: bool, value: u32) -> CallResult {
    tokio::task::yield_now().await;
    info!("operation");
    if hangs {
        std::future::pending::<()>().await;
    }
    Ok(value)
}

fn work_on_a_worker(hangs: bool, value: u32) -> CallResult {
    info!("operation");
    if hangs {
        CancelToken::current().sleep(Duration::MAX)?;
    }
    Ok(value)
}

type Function = fn(String, (u32, u32), Parts, Opaque, bool) -> CallResult;

/// The functions of one order of the attributes.
struct Free {
    on_a_worker: Function,
    asynchronous: Function,
    boxed: Function,
    opaque: Function,
}

#[derive(Debug)]
struct Above;

#[derive(Debug)]
struct Below;

/// A type whose methods have the attributes in the order `O`.
struct Stock<O> {
    count: u32,
    order: PhantomData<O>,
}

impl<O> Debug for Stock<O> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "Stock({})", self.count)
    }
}

#[async_trait]
trait Shop {
    async fn borrowing(&self, name: &str, a: u32, hangs: bool) -> CallResult;
    async fn changing(&mut self, name: String, pair: (u32, u32), hangs: bool) -> CallResult;
    async fn associated(name: String, a: u32, hangs: bool) -> CallResult;
}

mod above {
    use super::*;

    #[timeout(limit = LIMIT.get())]
    #[instrument(ret, err)]
    fn on_a_worker(
        name: String,
        (a, mut b): (u32, u32),
        Parts { id, .. }: Parts,
        _: Opaque,
        hangs: bool,
    ) -> CallResult {
        b += 1;
        work_on_a_worker(hangs, a + b + id + length(&name))
    }

    #[timeout(limit = LIMIT.get())]
    #[instrument(ret, err)]
    async fn asynchronous(
        name: &str,
        (a, mut b): (u32, u32),
        Parts { id, .. }: Parts,
        _: Opaque,
        hangs: bool,
    ) -> CallResult {
        b += 1;
        work(hangs, a + b + id + length(name)).await
    }

    #[timeout(limit = LIMIT.get())]
    #[instrument(ret, err)]
    fn boxed(
        name: String,
        (a, mut b): (u32, u32),
        Parts { id, .. }: Parts,
        _: Opaque,
        hangs: bool,
    ) -> Pin<Box<dyn Future<Output = CallResult> + Send>> {
        Box::pin(async move {
            b += 1;
            work(hangs, a + b + id + length(&name)).await
        })
    }

    #[timeout(limit = LIMIT.get())]
    #[instrument(ret, err)]
    fn opaque(
        name: String,
        (a, mut b): (u32, u32),
        Parts { id, .. }: Parts,
        _: Opaque,
        hangs: bool,
    ) -> impl Future<Output = CallResult> + Send {
        async move {
            b += 1;
            work(hangs, a + b + id + length(&name)).await
        }
    }

    #[async_trait]
    impl Shop for Stock<Above> {
        #[timeout(limit = LIMIT.get())]
        #[instrument(ret, err)]
        async fn borrowing(&self, name: &str, a: u32, hangs: bool) -> CallResult {
            work(hangs, self.count + a + length(name)).await
        }

        #[timeout(limit = LIMIT.get())]
        #[instrument(ret, err)]
        async fn changing(&mut self, name: String, pair: (u32, u32), hangs: bool) -> CallResult {
            self.count += pair.0;
            work(hangs, self.count + pair.1 + length(&name)).await
        }

        #[timeout(limit = LIMIT.get())]
        #[instrument(ret, err)]
        async fn associated(name: String, a: u32, hangs: bool) -> CallResult {
            work(hangs, a + length(&name)).await
        }
    }

    pub(super) const FREE: Free = Free {
        on_a_worker,
        asynchronous: |name, pair, parts, opaque, hangs| {
            block_on(asynchronous(&name, pair, parts, opaque, hangs))
        },
        boxed: |name, pair, parts, opaque, hangs| block_on(boxed(name, pair, parts, opaque, hangs)),
        opaque: |name, pair, parts, opaque, hangs| {
            block_on(self::opaque(name, pair, parts, opaque, hangs))
        },
    };
}

mod below {
    use super::*;

    #[instrument(ret, err)]
    #[timeout(limit = LIMIT.get())]
    fn on_a_worker(
        name: String,
        (a, mut b): (u32, u32),
        Parts { id, .. }: Parts,
        _: Opaque,
        hangs: bool,
    ) -> CallResult {
        b += 1;
        work_on_a_worker(hangs, a + b + id + length(&name))
    }

    #[instrument(ret, err)]
    #[timeout(limit = LIMIT.get())]
    async fn asynchronous(
        name: &str,
        (a, mut b): (u32, u32),
        Parts { id, .. }: Parts,
        _: Opaque,
        hangs: bool,
    ) -> CallResult {
        b += 1;
        work(hangs, a + b + id + length(name)).await
    }

    #[instrument(ret, err)]
    #[timeout(limit = LIMIT.get())]
    fn boxed(
        name: String,
        (a, mut b): (u32, u32),
        Parts { id, .. }: Parts,
        _: Opaque,
        hangs: bool,
    ) -> Pin<Box<dyn Future<Output = CallResult> + Send>> {
        Box::pin(async move {
            b += 1;
            work(hangs, a + b + id + length(&name)).await
        })
    }

    #[instrument(ret, err)]
    #[timeout(limit = LIMIT.get())]
    fn opaque(
        name: String,
        (a, mut b): (u32, u32),
        Parts { id, .. }: Parts,
        _: Opaque,
        hangs: bool,
    ) -> impl Future<Output = CallResult> + Send {
        async move {
            b += 1;
            work(hangs, a + b + id + length(&name)).await
        }
    }

    #[async_trait]
    impl Shop for Stock<Below> {
        #[instrument(ret, err)]
        #[timeout(limit = LIMIT.get())]
        async fn borrowing(&self, name: &str, a: u32, hangs: bool) -> CallResult {
            work(hangs, self.count + a + length(name)).await
        }

        #[instrument(ret, err)]
        #[timeout(limit = LIMIT.get())]
        async fn changing(&mut self, name: String, pair: (u32, u32), hangs: bool) -> CallResult {
            self.count += pair.0;
            work(hangs, self.count + pair.1 + length(&name)).await
        }

        #[instrument(ret, err)]
        #[timeout(limit = LIMIT.get())]
        async fn associated(name: String, a: u32, hangs: bool) -> CallResult {
            work(hangs, a + length(&name)).await
        }
    }

    pub(super) const FREE: Free = Free {
        on_a_worker,
        asynchronous: |name, pair, parts, opaque, hangs| {
            block_on(asynchronous(&name, pair, parts, opaque, hangs))
        },
        boxed: |name, pair, parts, opaque, hangs| block_on(boxed(name, pair, parts, opaque, hangs)),
        opaque: |name, pair, parts, opaque, hangs| {
            block_on(self::opaque(name, pair, parts, opaque, hangs))
        },
    };
}

type Call = Box<dyn FnOnce(bool) -> CallResult>;

/// Every function, with its fields and its result in time.
fn calls<O: 'static>(free: &Free) -> Vec<(&'static str, &'static str, u32, Call)>
where
    Stock<O>: Shop,
{
    fn named(function: Function) -> Call {
        let parts = || Parts {
            id: 5,
            rest: Opaque(6),
        };
        assert_eq!(parts().rest.0, 6);
        Box::new(move |hangs| function("four".to_owned(), (1, 2), parts(), Opaque(7), hangs))
    }

    fn stock<O>() -> Stock<O> {
        Stock {
            count: 8,
            order: PhantomData,
        }
    }

    let fields = "name=\"four\" a=1 b=2 id=5";
    vec![
        ("on_a_worker", fields, 13, named(free.on_a_worker)),
        ("asynchronous", fields, 13, named(free.asynchronous)),
        ("boxed", fields, 13, named(free.boxed)),
        ("opaque", fields, 13, named(free.opaque)),
        (
            "borrowing",
            "self=Stock(8) name=\"four\" a=1",
            13,
            Box::new(|hangs| block_on(stock::<O>().borrowing("four", 1, hangs))),
        ),
        (
            "changing",
            "self=Stock(8) name=\"four\" pair=(1, 2)",
            15,
            Box::new(|hangs| block_on(stock::<O>().changing("four".to_owned(), (1, 2), hangs))),
        ),
        (
            "associated",
            "name=\"four\" a=1",
            5,
            Box::new(|hangs| block_on(Stock::<O>::associated("four".to_owned(), 1, hangs))),
        ),
    ]
}

/// The span of a function that returns a future covered nothing, `ret` and `err` did not compile,
/// and a pattern was a field `__arg1`, which needed `Debug`.
// Fails if the future of an expansion is not an `async` block at its end, if a pattern gets a
// generated name, or if the braces of the body are not those of the user.
#[test]
fn a_span_covers_the_operation_in_either_order() {
    for calls in [calls::<Above>(&above::FREE), calls::<Below>(&below::FREE)] {
        for (name, fields, value, call) in calls {
            let (seen, result) = recorded(Duration::from_secs(60), || call(false));
            assert_eq!(result.unwrap(), value, "{name}");
            let expected = [
                format!("span {name} {fields} hangs=false"),
                format!("in {name}: message=operation"),
                format!("in {name}: return={value}"),
            ];
            assert_eq!(seen, expected);
        }
    }
}

/// Above `instrument`, `#[timeout]` is inside the span, so the span records the error of the call.
#[test]
fn a_span_around_a_call_records_its_error() {
    for (name, fields, _, call) in calls::<Above>(&above::FREE) {
        let (seen, result) = recorded(Duration::from_millis(200), || call(true));
        assert!(result.unwrap_err().is_timed_out(), "{name}");
        let span = format!("span {name} {fields} hangs=true");
        let operation = format!("in {name}: message=operation");
        let error = format!("in {name}: error=");
        assert_eq!(seen[..2], [span, operation], "{name}");
        let errors = seen.iter().filter(|line| line.starts_with(&error));
        assert_eq!(errors.count(), 1, "{name}: {seen:?}");
    }
}
