//! Feature `metrics`: every outcome is counted once, and the gauge shows the number of abandoned
//! operations.

use crate::support;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::mpsc::channel;
use std::thread;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use support::{
    ABANDONING, EVERY_WAY, Gate, LONG, Way, abandon, eventually, limit, poll_once, short,
    until_cancelled,
};
use timeout_runtime::integrations::metrics::record_events;
use timeout_runtime::{CallContext, CancelToken, TimeoutError, add_propagator};

struct Numbers {
    prometheus: PrometheusHandle,
    /// Ends the operation that was abandoned before the recorder was installed.
    earlier: Gate,
}

/// The recorder of the process.
fn numbers() -> &'static Numbers {
    static NUMBERS: OnceLock<Numbers> = OnceLock::new();
    NUMBERS.get_or_init(|| {
        let earlier = abandon(Way::SyncWorker, "numbers::earlier");
        let builder = PrometheusBuilder::new().set_buckets(&[1.0]).unwrap();
        let prometheus = builder.install_recorder().unwrap();
        record_events().forget();
        Numbers {
            prometheus,
            earlier,
        }
    })
}

/// The metrics of the calls called `name`, one line each, without buckets and sums.
fn metrics_of(name: &str) -> Vec<String> {
    let label = format!(r#"{{name="{name}""#);
    let text = numbers().prometheus.render();
    let lines = text.lines().filter(|line| line.contains(&label));
    let lines = lines.filter(|line| !line.contains("_bucket{") && !line.contains("_sum{"));
    let mut lines: Vec<_> = lines.map(|line| line.replace(&label, "{")).collect();
    lines.sort();
    lines
}

// Fails if calls that did not start have a duration.
#[test]
fn every_outcome_is_counted_once_with_its_duration() {
    numbers();
    for way in EVERY_WAY {
        let name = match way {
            Way::SyncWorker => "numbers::SyncWorker",
            Way::SyncInline => "numbers::SyncInline",
            Way::AsyncInline => "numbers::AsyncInline",
            Way::AsyncTask => "numbers::AsyncTask",
            Way::AsyncWorker => "numbers::AsyncWorker",
        };
        let policy = limit(name, LONG);
        for _ in 0..3 {
            let _ = way.run(&policy, |_| Ok::<_, TimeoutError>(()));
        }
        for _ in 0..2 {
            let _ = way.run(&policy, |_| Err::<(), _>("no"));
        }
        let _ = way.run(&limit(name, short()), |token| until_cancelled(&token));
        let cancelled = CancelToken::new();
        cancelled.cancel();
        CallContext::detached().with_token(&cancelled).run(|| {
            let _ = way.run(&policy, |_| Ok::<_, TimeoutError>(()));
        });
        let expected = [
            "timeout_abandoned_operations{} 0",
            r#"timeout_call_duration_seconds_count{,status="failed"} 2"#,
            r#"timeout_call_duration_seconds_count{,status="succeeded"} 3"#,
            r#"timeout_call_duration_seconds_count{,status="timed_out"} 1"#,
            r#"timeout_calls_total{,status="failed"} 2"#,
            r#"timeout_calls_total{,status="not_started"} 1"#,
            r#"timeout_calls_total{,status="succeeded"} 3"#,
            r#"timeout_calls_total{,status="timed_out"} 1"#,
            r#"timeout_late_endings_total{,status="abandoned_stopped"} 1"#,
        ];
        let is_all = || {
            let lines = metrics_of(name);
            // An operation that stops immediately may end before its caller returns; then it was
            // never abandoned.
            let (gauge, counted): (Vec<_>, Vec<_>) = lines
                .iter()
                .partition(|line| line.contains("_abandoned_operations"));
            counted == expected[1..] && gauge.iter().all(|line| *line == expected[0])
        };
        eventually(
            &format!("{way:?} has recorded all: {:?}", metrics_of(name)),
            is_all,
        );
    }
}

#[test]
fn dropped_and_cancelled_calls_are_counted() {
    numbers();
    let name = "numbers::unfinished";
    let begun = Gate::new();
    let has_begun = begun.clone();
    let token = CancelToken::new();
    let canceller = token.clone();
    let cancels = thread::spawn(move || {
        has_begun.wait();
        canceller.cancel();
    });
    CallContext::detached().with_token(&token).run(|| {
        let _ = limit(name, LONG).inline().outcome(|own| {
            begun.open();
            until_cancelled(&own)
        });
    });
    cancels.join().unwrap();
    let mut call = Way::AsyncInline.start(&limit(name, LONG), |_| {
        std::future::pending::<Result<(), TimeoutError>>()
    });
    assert!(poll_once(&mut call, &Gate::new()).is_pending());
    drop(call);
    assert_eq!(
        metrics_of(name),
        [
            "timeout_abandoned_operations{} 0",
            r#"timeout_call_duration_seconds_count{,status="cancelled"} 1"#,
            r#"timeout_call_duration_seconds_count{,status="dropped"} 1"#,
            r#"timeout_calls_total{,status="cancelled"} 1"#,
            r#"timeout_calls_total{,status="dropped"} 1"#,
            r#"timeout_late_endings_total{,status="abandoned_stopped"} 1"#,
        ]
    );
}

// Fails if the gauge never falls.
#[test]
fn the_gauge_follows_the_number_of_abandoned_operations() {
    numbers();
    let name = "numbers::gauge";
    let gauge = |count: usize| format!("timeout_abandoned_operations{{}} {count}");
    for way in ABANDONING {
        let calls: Vec<_> = (0..8)
            .map(|_| thread::spawn(move || abandon(way, name)))
            .collect();
        let running: Vec<_> = calls.into_iter().map(|call| call.join().unwrap()).collect();
        assert_eq!(metrics_of(name)[0], gauge(8), "{way:?}");
        running.iter().for_each(Gate::open);
        eventually("the gauge returns to zero", || {
            metrics_of(name)[0] == gauge(0)
        });
    }
    let late = r#"timeout_late_endings_total{,status="abandoned_succeeded"} 24"#;
    assert!(
        metrics_of(name).contains(&late.to_owned()),
        "{:?}",
        metrics_of(name)
    );
}

/// The label used to contain the line breaks and bidirectional controls of the name.
#[test]
fn a_label_is_one_line() {
    numbers();
    let _ = limit("numbers\r\u{202e}", LONG)
        .inline()
        .outcome(|_| Ok::<_, TimeoutError>(()));
    // Prometheus doubles each backslash.
    assert_eq!(
        metrics_of(r"numbers\\r\\u{202e}"),
        [
            r#"timeout_call_duration_seconds_count{,status="succeeded"} 1"#,
            r#"timeout_calls_total{,status="succeeded"} 1"#,
        ]
    );
}

thread_local! {
    static LOCAL: Cell<Option<&'static PrometheusRecorder>> = const { Cell::new(None) };
}

/// Late events and the operation's own metrics used to bypass the caller's local recorder.
#[test]
fn a_propagator_brings_a_local_recorder_to_workers() {
    numbers();
    let recorder = PrometheusBuilder::new().build_recorder();
    let recorder: &'static PrometheusRecorder = Box::leak(Box::new(recorder));
    let has = |line: &str| recorder.handle().render().lines().any(|text| text == line);
    let call = |name| {
        let (ends, ended) = channel::<()>();
        let begun = Gate::new();
        let (has_begun, token) = (begun.clone(), CancelToken::new());
        let canceller = token.clone();
        let cancels = thread::spawn(move || {
            has_begun.wait();
            canceller.cancel();
        });
        let call = || {
            let _ = limit(name, LONG).outcome(move |_| {
                metrics::counter!("numbers_own", "name" => name).increment(1);
                begun.open();
                let _ = ended.recv();
                Ok::<_, TimeoutError>(())
            });
        };
        let context = CallContext::detached().with_token(&token);
        metrics::with_local_recorder(recorder, || context.run(call));
        cancels.join().unwrap();
        drop(ends);
        let outcome = format!(r#"timeout_calls_total{{name="{name}",status="cancelled"}} 1"#);
        assert!(has(&outcome), "the caller ends the call on its own thread");
        let own = format!(r#"numbers_own{{name="{name}"}} 1"#);
        let late = format!(
            r#"timeout_late_endings_total{{name="{name}",status="abandoned_succeeded"}} 1"#
        );
        (own, late)
    };

    let (own, late) = call("numbers::without");
    eventually("the global recorder has it", || {
        let text = numbers().prometheus.render();
        text.contains(&own) && text.contains(&late)
    });
    assert!(!has(&own) && !has(&late));

    let _recorders = add_propagator(|| {
        let recorder = LOCAL.get();
        move || recorder.map(|recorder| metrics::set_default_local_recorder(recorder))
    });
    LOCAL.set(Some(recorder));
    let (own, late) = call("numbers::with");
    eventually("the local recorder has it", || has(&own) && has(&late));
}

/// The gauge used to omit operations abandoned before the recorder was installed.
#[test]
fn the_gauge_includes_operations_abandoned_before_the_recorder() {
    let name = "numbers::earlier";
    let earlier = &numbers().earlier;
    assert_eq!(metrics_of(name), ["timeout_abandoned_operations{} 1"]);
    earlier.open();
    let late = r#"timeout_late_endings_total{,status="abandoned_succeeded"} 1"#;
    eventually("the late event is counted", || {
        metrics_of(name) == ["timeout_abandoned_operations{} 0", late]
    });
}
