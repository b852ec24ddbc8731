//! Rule 10 where no worker can be had for the callbacks of a token: a file of its own, since the cap holds for the whole process.

mod support;

use std::future::pending;

use support::{Gate, Way, block_on, limit, runtime, short};
use timeout_runtime::workers::Settings;
use timeout_runtime::{Outcome, TimeoutError};

/// Guards against callbacks that, for want of a worker, run on the thread which all deadlines are kept by.
#[test]
fn a_callback_that_blocks_holds_up_no_deadline() {
    Settings::new().cap(1).apply();
    let runtime = runtime();
    let _inside = runtime.enter();
    let (busy, leave) = (Gate::new(), Gate::new());
    let (is_busy, held) = (busy.clone(), leave.clone());
    // The only worker.
    let occupied = std::thread::spawn(move || {
        Way::SyncWorker.run(&limit("without_a_worker::occupied", 60_000), move |_| {
            is_busy.open();
            held.wait();
            Ok::<_, TimeoutError>(7)
        })
    });
    busy.wait();
    let (entered, block) = (Gate::new(), leave.clone());
    let is_in = entered.clone();
    let caller = runtime.spawn(limit("without_a_worker::blocks", short()).outcome_task(
        |token| async move {
            token
                .on_cancel(move || {
                    is_in.open();
                    block.wait();
                })
                .forget();
            pending::<Result<(), TimeoutError>>().await
        },
    ));
    entered.wait();
    let (sender, ended) = std::sync::mpsc::channel();
    let beside = std::thread::spawn(move || {
        let call = Way::AsyncInline.start(&limit("without_a_worker::beside", short()), |_| {
            pending::<Result<(), TimeoutError>>()
        });
        sender.send(block_on(call)).unwrap();
    });
    let ending = ended.recv_timeout(support::SOON / 2);
    leave.open();
    beside.join().unwrap();
    assert!(matches!(ending, Ok(Outcome::TimedOut(_))), "{ending:?}");
    let blocked = block_on(caller).unwrap();
    assert!(matches!(blocked, Outcome::TimedOut(_)), "{blocked:?}");
    assert!(occupied.join().unwrap().is_success());
}
