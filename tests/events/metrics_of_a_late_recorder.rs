//! The gauge of abandoned operations is exact in a recorder that was installed after the listener.

use crate::own_process::in_own_process;
use crate::support;
use std::sync::mpsc::{Sender, channel};

use metrics_exporter_prometheus::PrometheusBuilder;
use support::{Gate, SOON, Way, eventually, limit, poll_once};
use timeout_runtime::integrations::metrics::record_events;
use timeout_runtime::{TimeoutError, workers};

const NAME: &str = "late_recorder";

/// Abandons an operation that runs until the sender is dropped.
fn abandon() -> Sender<()> {
    let begun = Gate::new();
    let (ends, ended) = channel::<()>();
    let has_begun = begun.clone();
    let mut call = Way::AsyncWorker.start(&limit(NAME, 3_600_000), move |_| async move {
        has_begun.open();
        let _ = ended.recv();
        Ok::<_, TimeoutError>(())
    });
    assert!(poll_once(&mut call, &Gate::new()).is_pending());
    begun.wait();
    ends
}

/// The gauge used to fall below zero: it counted down operations that the recorder had not counted
/// up.
// Fails if the gauge is counted up and down, and not set.
#[test]
fn the_gauge_is_exact_in_a_recorder_that_is_installed_later() {
    in_own_process(|| {
        let _listener = record_events();
        let mut running: Vec<_> = (0..3).map(|_| abandon()).collect();
        let recorder = PrometheusBuilder::new().install_recorder().unwrap();
        let gauge = || {
            let line = format!("timeout_abandoned_operations{{name=\"{NAME}\"}} ");
            let text = recorder.render();
            let value = text.lines().find_map(|text| text.strip_prefix(&line));
            value.map(str::to_owned)
        };

        running.push(abandon());
        assert_eq!(gauge().as_deref(), Some("4"));
        // A second listener counts every event twice, but each operation once.
        let _second = record_events();
        assert_eq!(gauge().as_deref(), Some("4"));
        running.truncate(1);
        eventually("the gauge falls to one", || gauge().as_deref() == Some("1"));
        drop(running);
        assert_eq!(workers::drain(SOON), 0);
        assert_eq!(gauge().as_deref(), Some("0"));
    });
}
