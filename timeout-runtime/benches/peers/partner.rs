//! [`Partner`]: a thread that responds to one caller immediately.
//!
//! It measures the minimum cost of handing an operation over to another thread.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle, Thread};
use std::time::Instant;

use crate::operations::FAR;

const CALLER: u32 = 0;
const PARTNER: u32 = 1;
const END: u32 = 2;

/// How the two threads wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    Parked,
    Spinning,
}

/// The side whose turn it is. Padded to a cache line to avoid false sharing.
#[repr(align(128))]
struct Turn(AtomicU32);

/// A partner thread. Only the thread that creates it may call it.
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
        let shared = Arc::clone(&turn);
        let thread = thread::spawn(move || respond(waiting, &shared, &caller));
        Self {
            waiting,
            turn,
            other: thread.thread().clone(),
            thread: Some(thread),
        }
    }

    pub(crate) fn call(&self, x: u64) -> u64 {
        let turn = &self.turn.0;
        // Release publishes the caller's writes to the partner, and pairs with its Acquire loads.
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

fn respond(waiting: Waiting, turn: &Turn, caller: &Thread) {
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
