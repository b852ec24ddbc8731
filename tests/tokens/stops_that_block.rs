//! A stop that blocks, as a cancel request to a lost server does, holds its own operation only.

use crate::own_process::in_own_process;
use crate::support;
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::thread;

use support::{Gate, SOON, Way, assert_timed_out, before_it_opens, limit, runtime, short};
use timeout_runtime::{CancelToken, TimeoutError, workers};

#[test]
fn a_stop_that_blocks_holds_its_operation_and_not_the_caller() {
    in_own_process(|| {
        for way in [Way::SyncWorker, Way::AsyncWorker] {
            let release = Gate::new();
            let (held, (ends, work)) = (release.clone(), channel::<()>());
            let outcome = before_it_opens(&release, move || {
                let calls = limit("stops_that_block::held", short());
                let outcome = way.run(&calls, move |token| {
                    let mut ends = Some(ends);
                    let stop = move || {
                        ends.take();
                        held.wait();
                    };
                    token.interrupt_with(stop, || work.recv().is_err())
                });
                // The work has ended, and its stop has not.
                let held = workers::abandoned();
                assert_eq!(held.len(), 1, "{held:?}");
                outcome
            });
            assert_timed_out(way, &outcome);
            assert_eq!(workers::drain(SOON), 0);
        }
    });
}

/// Runs `test` in a process where more stops block than there are background threads usually.
fn while_stops_block(test: impl FnOnce() + Send + 'static) {
    const BLOCKED: usize = 100;

    let (token, release) = (CancelToken::new(), Gate::new());
    let all_work = Arc::new(Barrier::new(BLOCKED + 1));
    let threads = [(); BLOCKED].map(|()| {
        let (token, all_work) = (token.clone(), Arc::clone(&all_work));
        let (stop, work) = (release.clone(), release.clone());
        thread::spawn(move || {
            token.interrupt_with(
                move || stop.wait(),
                || {
                    all_work.wait();
                    work.wait();
                },
            )
        })
    });
    all_work.wait();
    token.cancel();
    before_it_opens(&release, test);
    for thread in threads {
        assert!(thread.join().unwrap().unwrap_err().is_cancelled());
    }
}

// Each of the following tests fails if no more threads are started while all of the usual ones
// block.

#[test]
fn while_other_stops_block_work_is_stopped() {
    in_own_process(|| {
        while_stops_block(|| {
            let (token, (ends, work)) = (CancelToken::new(), channel::<()>());
            let mut ends = Some(ends);
            let stop = move || drop(ends.take());
            let result = token.interrupt_with(stop, || {
                token.cancel();
                work.recv()
            });
            assert!(result.unwrap_err().is_cancelled());
        });
    });
}

#[test]
fn while_stops_block_a_done_channel_closes_at_the_limit_of_its_call() {
    in_own_process(|| {
        while_stops_block(|| {
            let (sender, closed) = channel();
            let outcome = limit("stops_that_block::done", short()).outcome(move |token| {
                let closed = token.done().recv();
                sender.send(closed).unwrap();
                token.check()
            });
            assert_timed_out(Way::SyncWorker, &outcome);
            assert!(closed.recv_timeout(SOON / 4).expect("it closes").is_err());
        });
    });
}

#[test]
fn while_stops_block_a_task_that_waits_for_a_call_is_woken_at_its_limit() {
    in_own_process(|| {
        while_stops_block(|| {
            let (runtime, (sender, woken)) = (runtime(), channel());
            let tasks = runtime.handle().clone();
            let release = Gate::new();
            let held = release.clone();
            let outcome = limit("stops_that_block::task", short()).outcome(move |token| {
                tasks.spawn(async move {
                    token.cancelled().await;
                    sender.send(()).unwrap();
                });
                held.wait();
                Ok::<_, TimeoutError>(())
            });
            assert_timed_out(Way::SyncWorker, &outcome);
            let woken = woken.recv_timeout(SOON / 4);
            release.open();
            assert!(woken.is_ok());
        });
    });
}
