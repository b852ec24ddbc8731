//! Feature `tracing`: an operation runs inside its caller's span in every place, and every outcome
//! is an event in that span.

use crate::own_process::in_own_process;
use crate::{support, tenant};
use std::fmt::{Debug, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, Once};
use std::thread;

use support::{
    ABANDONING, EVERY_WAY, Gate, LONG, Way, eventually, limit, poll_once, runtime, short,
    until_cancelled,
};
use tenant::{TENANT, propagate_tenant};
use timeout_runtime::integrations::tracing::{propagate_spans, record_events};
use timeout_runtime::{CallStatus, CancelToken, TimeoutError};
use tokio::runtime::Handle;
use tracing::field::{Field, Visit};
use tracing::span::Id;
use tracing::{Event, Level, Span, Subscriber, info, info_span};
use tracing_subscriber::Registry;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// Enables propagation of spans and the tenant, and events for outcomes, in the whole process. Each
/// test has its own process: `tracing` may disable an event for good if a thread without a
/// subscriber emits it first.
fn integrate() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        propagate_spans().forget();
        record_events().forget();
        propagate_tenant();
    });
}

/// One event: its level, the spans around it, and its fields.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    level: Level,
    spans: String,
    message: String,
    fields: String,
}

/// The events and closed spans that a subscriber received.
#[derive(Clone, Default)]
struct Sink {
    events: Arc<Mutex<Vec<Seen>>>,
    closed: Arc<Mutex<Vec<&'static str>>>,
}

impl Sink {
    fn subscriber(&self) -> impl Subscriber + Send + Sync + for<'a> LookupSpan<'a> {
        Registry::default().with(self.clone())
    }

    fn events(&self) -> Vec<Seen> {
        self.events.lock().unwrap().clone()
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Sink {
    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let spans = context.event_scope(event).into_iter().flatten();
        let mut seen = Seen {
            level: *event.metadata().level(),
            spans: spans
                .map(|span| span.name())
                .collect::<Vec<_>>()
                .join(" in "),
            message: String::new(),
            fields: String::new(),
        };
        event.record(&mut seen);
        self.events.lock().unwrap().push(seen);
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let name = context.span(&id).map_or("unknown", |span| span.name());
        self.closed.lock().unwrap().push(name);
    }
}

impl Visit for Seen {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            // These values differ between runs.
            name @ ("call" | "elapsed" | "worker") => write!(self.fields, "{name} ").unwrap(),
            name => write!(self.fields, "{name}={value:?} ").unwrap(),
        }
    }
}

// Fails if an operation gets the span and not the subscriber, or the subscriber and not the span.
#[test]
fn an_operation_inherits_its_callers_tenant_span_subscriber_and_runtime() {
    in_own_process(|| {
        integrate();
        for way in EVERY_WAY {
            let sink = Sink::default();
            let scoped = tracing::subscriber::set_default(sink.subscriber());
            let request = info_span!("request").entered();
            TENANT.set(7);
            let runtime = runtime();
            let _inside = runtime.enter();
            let expected = (7, request.id(), Some(runtime.handle().id()));
            let look = || {
                info!("operation");
                let runtime = Handle::try_current().ok().map(|handle| handle.id());
                Ok::<_, TimeoutError>((TENANT.get(), Span::current().id(), runtime))
            };
            let policy = limit("spans::inherits", LONG);
            let found = match way {
                Way::SyncWorker | Way::SyncInline => way.run(&policy, move |_| look()),
                _ => support::block_on(way.start(&policy, move |_| async move {
                    tokio::task::yield_now().await;
                    look()
                })),
            };
            assert_eq!(found.success(), Some(expected), "{way:?}");
            let spans: Vec<_> = sink.events().into_iter().map(|seen| seen.spans).collect();
            assert_eq!(spans, ["request"; 2], "{way:?}: operation and outcome");
            // A later call on the same worker sees none of these values.
            drop((request, scoped));
            TENANT.set(0);
            let outside = way.run(&limit("spans::outside", LONG), |_| {
                Ok::<_, TimeoutError>((TENANT.get(), Span::current().is_none()))
            });
            assert_eq!(
                outside.success(),
                Some((0, true)),
                "{way:?}: a value remains"
            );
        }
    });
}

/// A worker used to keep the span open, so that an exporter was shut down before it closed.
#[test]
fn a_span_closes_when_the_caller_closes_it() {
    in_own_process(|| {
        integrate();
        let sink = Sink::default();
        let _scoped = tracing::subscriber::set_default(sink.subscriber());
        for way in [Way::SyncWorker, Way::AsyncWorker] {
            for _ in 0..100 {
                let request = info_span!("request").entered();
                let outcome = way.run(&limit("spans::closes", LONG), |_| Ok::<_, TimeoutError>(()));
                assert_eq!(outcome.status(), CallStatus::Ok);
                drop(request);
                assert_eq!(
                    std::mem::take(&mut *sink.closed.lock().unwrap()),
                    ["request"]
                );
            }
        }
    });
}

/// Waits for `count` events of the calls that `calls` makes inside a span.
fn recorded(count: usize, calls: impl FnOnce()) -> Vec<Seen> {
    integrate();
    let sink = Sink::default();
    let _scoped = tracing::subscriber::set_default(sink.subscriber());
    info_span!("request").in_scope(calls);
    eventually("all events are recorded", || sink.events().len() >= count);
    sink.events()
}

#[track_caller]
fn assert_recorded(seen: &[Seen], expected: &[(Level, &str, &str)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|&(level, message, fields)| Seen {
            level,
            spans: "request".to_owned(),
            message: message.to_owned(),
            fields: fields.to_owned(),
        })
        .collect();
    assert_eq!(seen, expected);
}

// Fails if an outcome has another level.
#[test]
fn successes_and_failures_are_recorded_with_their_fields() {
    in_own_process(|| {
        let seen = recorded(3, || {
            let policy = limit("spans::ends", LONG);
            let _ = policy.outcome(|_| Ok::<_, TimeoutError>(()));
            let _ = policy.outcome(|_| Err::<(), _>("two\nlines"));
            let panics = || {
                policy
                    .inline()
                    .outcome(|_| -> Result<(), TimeoutError> { panic!("wanted") })
            };
            assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        });
        let start = r#"name="spans::ends" call elapsed limit=60s "#;
        assert_recorded(
            &seen,
            &[
                (Level::DEBUG, "succeeded", &format!("{start}worker ")),
                (
                    Level::WARN,
                    "failed",
                    &format!("{start}worker failure=\"two\\nlines\" "),
                ),
                (
                    Level::ERROR,
                    "failed",
                    &format!("{start}failure=panic: wanted "),
                ),
            ],
        );
    });
}

/// The name used to reach the subscriber with its line breaks and bidirectional controls.
#[test]
fn a_name_is_recorded_on_one_line() {
    in_own_process(|| {
        let seen = recorded(1, || {
            let policy = limit("spans\n\u{202e}", LONG);
            let _ = policy.inline().outcome(|_| Ok::<_, TimeoutError>(()));
        });
        // The subscriber prints the text as a literal, which doubles each backslash.
        let start = r#"name="spans\\n\\u{202e}" call elapsed limit=60s "#;
        assert_recorded(&seen, &[(Level::DEBUG, "succeeded", start)]);
    });
}

#[test]
fn a_late_event_is_recorded_in_its_callers_span() {
    in_own_process(|| {
        for way in ABANDONING {
            for ends in ["succeeds", "fails", "panics"] {
                let seen = recorded(2, || {
                    let gate = Gate::new();
                    let held = gate.clone();
                    let outcome = way.run(&limit("spans::late", short()), move |_| {
                        held.wait();
                        match ends {
                            "succeeds" => Ok(()),
                            "fails" => Err("late"),
                            _ => panic!("wanted"),
                        }
                    });
                    assert_ne!(outcome.status(), CallStatus::Ok);
                    gate.open();
                });
                let worker = if way == Way::AsyncTask { "" } else { "worker " };
                let limit = support::short_limit();
                let start = format!(r#"name="spans::late" call elapsed limit={limit:?} {worker}"#);
                let (level, message, failure) = match ends {
                    "succeeds" => (Level::WARN, "abandoned_succeeded", ""),
                    "fails" => (Level::WARN, "abandoned_failed", "failure=\"late\" "),
                    _ => (Level::ERROR, "abandoned_failed", "failure=panic: wanted "),
                };
                assert_recorded(
                    &seen,
                    &[
                        (Level::WARN, "timed_out", &start),
                        (level, message, &format!("{start}{failure}")),
                    ],
                );
            }
        }
    });
}

#[test]
fn dropped_and_cancelled_calls_are_recorded() {
    in_own_process(|| {
        let seen = recorded(4, || {
            let token = CancelToken::new();
            let canceller = token.clone();
            let context = timeout_runtime::CallContext::detached().with_token(&token);
            context.run(|| {
                let policy = limit("spans::unfinished", LONG);
                let begun = Gate::new();
                let has_begun = begun.clone();
                let cancels = thread::spawn(move || {
                    has_begun.wait();
                    canceller.cancel();
                });
                let _ = policy.inline().outcome(|own| {
                    begun.open();
                    until_cancelled(&own)
                });
                cancels.join().unwrap();
                let _ = policy.outcome(|_| Ok::<_, TimeoutError>(()));
            });
            let mut call = Way::AsyncInline.start(&limit("spans::unfinished", LONG), |_| {
                std::future::pending::<Result<(), TimeoutError>>()
            });
            assert!(poll_once(&mut call, &Gate::new()).is_pending());
            drop(call);
        });
        let start = r#"name="spans::unfinished" call elapsed limit=60s "#;
        let stopped = "failure=TimeoutError";
        let (cancelled, late, others) = (&seen[0], &seen[1], &seen[2..]);
        assert!(late.fields.contains(stopped), "{late:?}");
        let late = Seen {
            fields: String::new(),
            ..late.clone()
        };
        assert_recorded(
            &[cancelled.clone(), late],
            &[
                (Level::INFO, "cancelled", start),
                (Level::DEBUG, "abandoned_stopped", ""),
            ],
        );
        assert_recorded(
            &others[..2],
            &[
                (
                    Level::WARN,
                    "not_started",
                    &format!("{start}cause=its caller was cancelled "),
                ),
                (Level::DEBUG, "dropped", start),
            ],
        );
    });
}
