//! Drops long chains of child tokens on a thread with a small stack: row T7.
//!
//! Each chain runs in its own process, because a stack overflow aborts the process.

use std::thread;

use timeout_runtime::CancelToken;

use crate::child;
use crate::finding::Finding;
use crate::options::Options;

const STACK: usize = 64 << 10;

const ORDERS: [&str; 4] = ["root-first", "leaf-first", "scattered", "leaf-alone"];
const STATES: [&str; 2] = ["cancelled", "live"];

pub(crate) fn all(options: &Options) -> Vec<Finding> {
    [("T7a", 10_000_u32), ("T7b", 1_000_000)]
        .into_iter()
        .filter(|(row, _)| options.wants(row))
        .map(|(row, length)| {
            let length = length.to_string();
            let ways = ORDERS
                .iter()
                .flat_map(|order| STATES.map(|state| (*order, state)));
            let overflowed: u32 = ways
                .map(|(order, state)| {
                    let words = [length.as_str(), order, state];
                    let finished = child::finished(&mut child::command("chain", &words));
                    u32::from(finished.is_none())
                })
                .sum();
            Finding::count(row, f64::from(overflowed))
        })
        .collect()
}

/// The job of such a process. The arguments are the length of the chain, the order in which its
/// tokens are dropped, and whether the root is cancelled first.
pub(crate) fn run(words: &[String]) {
    let [length, order, state] = words else {
        panic!("the job takes a length, an order and a state");
    };
    let length: usize = length.parse().expect("a number");
    let order = order.clone();
    let cancelled = state == STATES[0];
    thread::Builder::new()
        .stack_size(STACK)
        .spawn(move || chain(length, &order, cancelled))
        .expect("a thread")
        .join()
        .expect("a chain does not panic");
}

fn chain(length: usize, order: &str, cancelled: bool) {
    let root = CancelToken::new();
    let mut tokens = vec![root.clone()];
    for _ in 0..length {
        let child = tokens[tokens.len() - 1].child();
        if order == "leaf-alone" {
            tokens.pop();
        }
        tokens.push(child);
    }
    let leaf = tokens[tokens.len() - 1].clone();
    if cancelled {
        root.cancel();
        assert!(leaf.is_cancelled());
    }
    drop((root, leaf));
    match order {
        "leaf-first" => while tokens.pop().is_some() {},
        "scattered" => {
            // Visits each token once, because no count is a multiple of this prime.
            let count = tokens.len();
            let mut tokens: Vec<_> = tokens.into_iter().map(Some).collect();
            for turn in 0..count {
                tokens[turn * 7919 % count] = None;
            }
        }
        // A vector drops its first element first.
        _ => drop(tokens),
    }
}
