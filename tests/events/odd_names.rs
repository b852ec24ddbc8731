//! A call may have any name, and its name is never the name of a thread.

use crate::own_process::in_own_process;
use crate::{concurrent, support};
use std::fmt::{self, Debug};
use std::sync::mpsc;
use std::sync::{Arc, Barrier};
use std::thread;

use support::short;
use support::{EVERY_WAY, Way, limit, record, until_cancelled};
use timeout_runtime::{CallStatus, EventKind, Failure, Outcome, TimeoutError, timeout};

fn odd_names() -> [&'static str; 6] {
    [
        "",
        "a\0b",
        Box::leak("long-".repeat(60).into_boxed_str()),
        "заказ-склад-№1",
        "x\ny",
        "{} `%s` \u{1b}[31m",
    ]
}

/// Makes a call and returns the name of the thread on which its operation runs.
fn thread_of(way: Way, name: &'static str) -> Option<String> {
    let (sender, receiver) = mpsc::channel();
    let outcome = way.run(&limit(name, 60_000), move |_| {
        sender
            .send(thread::current().name().map(str::to_owned))
            .unwrap();
        Ok::<_, TimeoutError>(())
    });
    assert_eq!(
        outcome.status(),
        CallStatus::Ok,
        "{name:?}, {way:?}: {outcome:?}"
    );
    receiver.recv().unwrap()
}

/// The name used to be a thread's name, so a call could panic and its name could be cut off.
#[test]
fn any_name_works_and_is_unchanged_in_events() {
    in_own_process(|| {
        for name in odd_names() {
            for way in EVERY_WAY {
                let recorder = record(name);
                let thread = thread_of(way, name);
                let events = recorder.events();
                assert_eq!(events.len(), 1, "{name:?}, {way:?}");
                assert_eq!(events[0].name, name);
                assert_eq!(events[0].kind, EventKind::Succeeded);
                assert_eq!(events[0].to_string().lines().count(), 1, "{}", events[0]);
                if let Some(worker) = events[0].worker {
                    assert_eq!(thread, Some(worker.to_string()), "{name:?}, {way:?}");
                }
            }
        }
    });
}

/// Line breaks in the message of an error or a panic used to break the printed event.
// Fails if texts of users are not escaped.
#[test]
fn any_message_is_printed_on_one_line() {
    in_own_process(|| {
        let text = "left: \"1\"\r\n right\u{2028}\u{1b}[31m";
        let printed = r#"left: "1"\r\n right\u{2028}\u{1b}[31m"#;
        for way in EVERY_WAY {
            let recorder = record("any text");
            let outcome = way.run(&limit("any text", 60_000), move |_| {
                Err::<(), _>(Verbatim(text))
            });
            assert!(matches!(outcome, Outcome::Failure(Verbatim(_))), "{way:?}");
            let events = recorder.events();
            assert_eq!(
                events[0].kind,
                EventKind::Failed(Failure::Error(text.into()))
            );
            let event = events[0].to_string();
            assert!(
                event.contains(&format!(": {printed} (limit 60s)")),
                "{event}"
            );
        }
        assert_eq!(
            Failure::Panic(text.into()).to_string(),
            format!("panic: {printed}")
        );
    });
}

/// An error whose `Debug` writes its text unchanged.
struct Verbatim(&'static str);

impl Debug for Verbatim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A name must reach the error unchanged.
#[test]
fn any_name_is_in_the_error_unchanged() {
    in_own_process(|| {
        let names = odd_names();
        concurrent::run_concurrently(names.len(), names.len(), |index| {
            for way in EVERY_WAY {
                let name = names[index];
                let outcome = way.run(&limit(name, short()), |token| until_cancelled(&token));
                let Outcome::TimedOut(error) = outcome else {
                    panic!("{name:?}, {way:?}: {outcome:?}");
                };
                assert_eq!(error.name(), name, "{way:?}");
            }
        });
    });
}

/// The system cuts thread names off at 15 bytes, and workers must still have distinct names.
#[test]
fn workers_have_short_and_distinct_names() {
    in_own_process(|| {
        let both_run = Arc::new(Barrier::new(2));
        let names: Vec<String> = thread::scope(|scope| {
            let calls: Vec<_> = (0..2)
                .map(|_| {
                    let both_run = Arc::clone(&both_run);
                    scope.spawn(|| {
                        let outcome = limit("odd_names::same", 60_000).outcome(move |_| {
                            both_run.wait();
                            Ok::<_, TimeoutError>(thread::current().name().map(str::to_owned))
                        });
                        outcome.success().flatten().expect("a worker has a name")
                    })
                })
                .collect();
            calls.into_iter().map(|call| call.join().unwrap()).collect()
        });
        assert_ne!(names[0], names[1]);
        for name in names {
            assert!(name.starts_with("timeout-") && name.len() <= 15, "{name}");
        }
    });
}

/// Pairs of a name and a function with that name in the attribute.
macro_rules! named {
    ($($name:expr),+) => {
        [$({
            #[timeout(name = $name, secs = 60)]
            fn named() -> Result<(), TimeoutError> {
                Ok(())
            }
            ($name, named as fn() -> Result<(), TimeoutError>)
        }),+]
    };
}

const CONSTANT: &str = "a name\nfrom elsewhere";

/// A name in an attribute must neither be refused at the first call nor changed by the expansion.
#[test]
fn any_name_works_in_the_attribute() {
    in_own_process(|| {
        let functions = named![
            "",
            "a\0b",
            "300 bytes: -------------------------------------------------------------------------------------------------\
         ------------------------------------------------------------------------------------------------------------\
         ------------------------------------------------------------------------------------",
            "заказ-склад-№1 (attribute)",
            "x\ny (attribute)",
            r"raw \n",
            CONSTANT
        ];
        for (name, named) in functions {
            let recorder = record(name);
            named().unwrap();
            assert_eq!(recorder.kinds(), [EventKind::Succeeded], "{name:?}");
        }
    });
}
