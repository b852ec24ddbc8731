//! Compares every annotated function with its plain version.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::thread;

use timeout_runtime::{Event, EventKind, add_listener};

use super::{Hangs, Log, Shape, families};
use crate::support::{EVERY_WAY, Way, eventually, is_late};

impl Shape {
    fn check(&self) {
        self.check_when(Hangs::Not);
        self.check_when(Hangs::UntilCancelled);
        if self.way == Way::AsyncInline {
            self.check_when(Hangs::Forever);
        }
    }

    fn check_when(&self, hangs: Hangs) {
        let call = format!("{} as {:?}, hangs: {hangs:?}", self.path, self.way);
        let (expected, log) = (Log::default(), Log::default());
        let value = (self.plain)(hangs, &expected);
        assert_eq!(value.is_none(), hangs != Hangs::Not, "{call}");
        assert_ne!(
            expected.names(),
            [""; 0],
            "{call}: the shape drops no value"
        );

        let (outcome, limited) = self.listen(|| (self.limited)(hangs, &log));
        assert_eq!(limited, value, "{call}");
        // An inline call with a plain value succeeds, also after the cancellation.
        let returns_a_value = self.path.contains("::fallen_back")
            && self.way == Way::AsyncInline
            && hangs == Hangs::UntilCancelled;
        let kind = if hangs == Hangs::Not || returns_a_value {
            EventKind::Succeeded
        } else {
            EventKind::TimedOut
        };
        let outcome = outcome.unwrap_or_else(|| panic!("{call}: there was no outcome event"));
        assert_eq!(outcome.kind, kind, "{call}");
        let on_a_worker = matches!(self.way, Way::SyncWorker | Way::AsyncWorker);
        assert_eq!(outcome.worker.is_some(), on_a_worker, "{call}");

        if hangs != Hangs::Not && self.way.abandons() {
            eventually("an abandoned operation drops its values", || {
                log.names().len() >= expected.names().len()
            });
        }
        assert_eq!(log.names(), expected.names(), "{call}");
    }

    /// Runs `call` and returns its outcome event, not those of nested calls: these end on another
    /// thread, or have greater ids.
    fn listen(&self, call: impl FnOnce() -> Option<u32>) -> (Option<Event<'static>>, Option<u32>) {
        let (outcomes, path) = (Arc::<Mutex<Vec<Event<'static>>>>::default(), self.path);
        let (sink, caller) = (Arc::clone(&outcomes), thread::current().id());
        let listener = add_listener(move |event| {
            let inside = event.name.strip_prefix(path);
            let is_of_shape = inside.is_some_and(|name| name.starts_with("::"));
            if is_of_shape && !is_late(&event.kind) && thread::current().id() == caller {
                sink.lock().unwrap().push(event.clone().into_owned());
            }
        });
        let value = call();
        drop(listener);
        let outcomes = outcomes.lock().unwrap();
        let first = outcomes.iter().min_by_key(|event| event.call);
        (first.cloned(), value)
    }
}

/// Hanging shapes mostly wait, so several are checked at the same time.
#[test]
fn an_annotated_function_of_any_shape_behaves_like_the_plain_one() {
    let shapes: Vec<&Shape> = families().collect();
    for some in shapes.chunks(32) {
        thread::scope(|scope| {
            for shape in some {
                scope.spawn(|| shape.check());
            }
        });
    }
}

#[test]
fn every_runner_has_many_shapes() {
    let names: BTreeSet<_> = families().map(|shape| shape.name).collect();
    assert!(names.len() >= 100, "{} shapes", names.len());
    for way in EVERY_WAY {
        let shapes = families().filter(|shape| shape.way == way).count();
        assert!(shapes >= 20, "{shapes} shapes run as {way:?}");
    }
}
