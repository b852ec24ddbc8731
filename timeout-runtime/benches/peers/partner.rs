//! [`Partner`]: a thread that answers one caller at once: what handing over to another thread costs at least.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle, Thread};
use std::time::Instant;

use crate::operations::FAR;

const CALLER: u32 = 0;
const PARTNER: u32 = 1;
const END: u32 = 2;

/// How both sides wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    Parked,
    Spinning,
}

/// Whose turn it is, alone on its cache line.
#[repr(align(128))]
struct Turn(AtomicU32);

/// Of the thread that makes it, which alone may call.
pub(crate) struct Partner {
    waiting: Waiting,
    turn: Arc<Turn>,
    other: Thread,
    thread: Option<JoinHandle<()>>,
}

impl Partner {
    pub(crate) fn new(waiting: Waiting) -> Self {
        let turn = Arc::new(Turn(AtomicU32::new(CALLER)));
        let caller = thread::current();
        let its = Arc::clone(&turn);
        let thread = thread::spawn(move || answer(waiting, &its, &caller));
        Self {
            waiting,
            turn,
            other: thread.thread().clone(),
            thread: Some(thread),
        }
    }

    pub(crate) fn call(&self, x: u64) -> u64 {
        let turn = &self.turn.0;
        // Release: the partner sees what the caller did before; each Acquire below is its other half.
        match self.waiting {
            Waiting::Parked => {
                let begun = Instant::now();
                turn.store(PARTNER, Ordering::Release);
                self.other.unpark();
                while turn.load(Ordering::Acquire) != CALLER {
                    thread::park_timeout(FAR.saturating_sub(begun.elapsed()));
                }
            }
            Waiting::Spinning => {
                turn.store(PARTNER, Ordering::Release);
                while turn.load(Ordering::Acquire) != CALLER {
                    spin_loop();
                }
            }
        }
        x + 1
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        self.turn.0.store(END, Ordering::Release);
        self.other.unpark();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("a partner does not panic");
        }
    }
}

fn answer(waiting: Waiting, turn: &Turn, caller: &Thread) {
    loop {
        match turn.0.load(Ordering::Acquire) {
            END => return,
            CALLER if waiting == Waiting::Parked => thread::park(),
            CALLER => spin_loop(),
            _ => {
                turn.0.store(CALLER, Ordering::Release);
                if waiting == Waiting::Parked {
                    caller.unpark();
                }
            }
        }
    }
}
