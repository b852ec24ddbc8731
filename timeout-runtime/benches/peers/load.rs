//! Measures processor time on a busy and on a mostly idle machine: rows S16b and S16c.

use std::hint::spin_loop;
use std::io::{self, Read};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use crate::callers::Callers;
use crate::child;
use crate::finding::Finding;
use crate::group::Group;
use crate::measured::Figure;
use crate::offload::tokio;
use crate::operations;
use crate::options::Options;
use crate::partner::Waiting;
use crate::sync_calls::{add, partners, plain};

const ROUNDS: usize = 15;
const BUSY: usize = 2;

pub(crate) fn sparse(options: &Options) -> Vec<Finding> {
    let sparse = Callers {
        time: Duration::from_millis(80),
        pause: Some(Duration::from_millis(1)),
        ..Callers::new(1)
    };
    let mut group = Group::new(options, "a call each ms");
    let ours = group.lane(plain(sparse, add));
    let parked = group.lane(partners(sparse, Waiting::Parked));
    group.ratio("S16b", Figure::Cpu, ours, parked);
    group.run(ROUNDS)
}

pub(crate) fn beside_busy_threads(options: &Options) -> Vec<Finding> {
    if !options.wants("S16c") {
        return Vec::new();
    }
    let _busy = Busy::start();
    let one = Callers {
        time: Duration::from_millis(100),
        ..Callers::new(1)
    };
    let mut group = Group::new(options, "beside 2 busy threads");
    let ours = group.lane(plain(one, add));
    let of_tokio = group.lane(plain(one, |x| tokio(operations::add, x)));
    group.ratio("S16c", Figure::Cpu, ours, of_tokio);
    group.run(ROUNDS)
}

/// A process of busy threads. Their processor time does not count for this process.
struct Busy(Child);

impl Busy {
    fn start() -> Self {
        let process = child::command("busy", &[]).stdin(Stdio::piped()).spawn();
        Self(process.expect("this program runs already"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // Closing its input makes the process exit.
        self.0.stdin = None;
        let _ = self.0.wait();
    }
}

/// The job of the busy process.
pub(crate) fn keep_busy() {
    for _ in 0..BUSY {
        thread::spawn(|| {
            loop {
                spin_loop();
            }
        });
    }
    // Returns when the parent process closes the pipe or exits.
    let _ = io::stdin().read_to_end(&mut Vec::new());
}
