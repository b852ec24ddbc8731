//! A model of a tree of about twenty tokens that three threads extend, cancel and drop at random.

use super::*;
use crate::Registration;
use crate::sync::{Mutex, lock, model_env};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread::spawn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

const THREADS: usize = 3;
const STEPS: usize = 12;

/// A token, its bit and the bits of all tokens above, and how often its callback has run.
#[derive(Clone)]
struct Known {
    token: CancelToken,
    line: u32,
    runs: Arc<AtomicU32>,
    _registration: Arc<Registration>,
}

/// The tokens by their bits.
struct Forest {
    known: Mutex<Vec<Known>>,
    made: AtomicU32,
    /// The tokens whose cancellation has begun, and those for which it has returned.
    begun: AtomicU32,
    done: AtomicU32,
}

impl Forest {
    fn add(&self, token: CancelToken, above: u32) {
        let bit = 1_u32.checked_shl(self.made.fetch_add(1, SeqCst));
        let Some(bit) = bit else { return };
        let runs = Arc::new(AtomicU32::new(0));
        let registration = token.on_cancel({
            let runs = Arc::clone(&runs);
            move || {
                runs.fetch_add(1, SeqCst);
            }
        });
        let known = Known {
            token,
            line: above | bit,
            runs,
            _registration: Arc::new(registration),
        };
        lock(&self.known).push(known);
    }

    fn any(&self) -> Known {
        let known = lock(&self.known);
        known[thread_rng().gen_range(0..known.len())].clone()
    }

    /// A token is cancelled if one above it has been, and only if one above it is being cancelled.
    fn check(&self, known: &Known) {
        let done = self.done.load(SeqCst);
        let is_cancelled = known.token.is_cancelled();
        let begun = self.begun.load(SeqCst);
        assert!(
            is_cancelled || known.line & done == 0,
            "a cancellation is missed"
        );
        assert!(
            !is_cancelled || known.line & begun != 0,
            "no token above is cancelled"
        );
    }

    fn step(&self) {
        let (one, two) = (self.any(), self.any());
        match thread_rng().gen_range(0..8) {
            0..3 => self.add(one.token.child(), one.line),
            3..5 => self.add(
                CancelToken::linked([&one.token, &two.token]),
                one.line | two.line,
            ),
            5 => {
                // The highest bit is its own.
                let bit = 1 << (31 - one.line.leading_zeros());
                self.begun.fetch_or(bit, SeqCst);
                one.token.cancel();
                self.done.fetch_or(bit, SeqCst);
            }
            _ => {
                let mut known = lock(&self.known);
                if known.len() > 2 {
                    let at = thread_rng().gen_range(1..known.len());
                    let dropped = known.swap_remove(at);
                    drop(known);
                    drop(dropped);
                }
            }
        }
        self.check(&one);
        self.check(&two);
    }
}

#[test]
fn a_cancellation_reaches_all_descendants_and_no_other_token() {
    model_env::check(0, || {
        let forest = Arc::new(Forest {
            known: Mutex::new(Vec::new()),
            made: AtomicU32::new(0),
            begun: AtomicU32::new(0),
            done: AtomicU32::new(0),
        });
        let root = CancelToken::new();
        forest.add(root.clone(), 0);
        forest.add(root.child(), 1);
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let forest = Arc::clone(&forest);
                spawn(move || (0..STEPS).for_each(|_| forest.step()))
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        let known = std::mem::take(&mut *lock(&forest.known));
        for known in &known {
            forest.check(known);
            let expected = u32::from(known.token.is_cancelled());
            // Callbacks run on background threads.
            while known.runs.load(SeqCst) < expected {
                crate::sync::thread::yield_now();
            }
        }
        // Each callback has run once.
        for Known { token, runs, .. } in &known {
            assert_eq!(runs.load(SeqCst), u32::from(token.is_cancelled()));
        }
        drop(known);
        assert_eq!(root.0.children(), 0);
    });
}
