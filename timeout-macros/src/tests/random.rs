//! Tests with random attributes and items: the promises in `promises.rs` hold for every input.
//!
//! `cargo test` tries the same cases each time. `TIMEOUT_FUZZ_SECS=60 cargo test -p timeout-macros
//! random` tries new cases for a minute. A failure is reported with its seed and in as few tokens
//! as possible. `TIMEOUT_FUZZ_SEED` tries only that seed.

// Tests of this file fail if a mistake is reported twice, not at all or elsewhere, if the item is
// left out or emitted twice, if a large integer causes a panic, or if a unit is wrong.

mod chance;
mod durations;
mod function;
mod grammar;
mod mutation;
mod places;
mod promises;
mod shrink;
mod words;

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

use chance::Chance;
use mutation::Corpus;

/// One use of the attribute.
#[derive(Clone)]
struct Case {
    args: TokenStream,
    item: TokenStream,
    /// The number of mistakes in it, if known.
    mistakes: Option<usize>,
}

/// Calls `check` with one seed after the other: `times` seeds, or as the environment variables say.
fn for_seeds(times: u64, mut check: impl FnMut(u64)) {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        Some(text.parse::<u64>().expect("a whole number"))
    };
    if let Some(seed) = number("TIMEOUT_FUZZ_SEED") {
        check(seed);
    } else if let Some(seconds) = number("TIMEOUT_FUZZ_SECS") {
        let (begin, limit) = (Instant::now(), Duration::from_secs(seconds));
        let first = RandomState::new().hash_one(0);
        let mut tried = 0;
        while begin.elapsed() < limit {
            check(first.wrapping_add(tried));
            tried += 1;
        }
        println!("{tried} cases");
    } else {
        (0..times).for_each(check);
    }
}

/// Checks the promises on the cases that `make` builds from seeds.
fn check(times: u64, make: impl Fn(&mut Chance) -> Option<Case>) {
    for_seeds(times, |seed| {
        // Otherwise the text of every case stays in memory.
        proc_macro2::extra::invalidate_current_thread_spans();
        let Some(case) = make(&mut Chance::new(seed)) else {
            return;
        };
        if let Err(broken) = promises::check(&case) {
            let (case, broken) = shrink::shrink(case, broken);
            let (args, item) = (spelled(case.args), spelled(case.item));
            panic!("{broken}\nTIMEOUT_FUZZ_SEED={seed}, shortened:\n#[timeout({args})] {item}");
        }
    });
}

/// `tokens` as text, with invisible groups between `«` and `»`.
fn spelled(tokens: TokenStream) -> String {
    let spell = |token: TokenTree| match token {
        TokenTree::Group(group) => {
            let (open, close) = match group.delimiter() {
                Delimiter::Parenthesis => ("(", ") "),
                Delimiter::Brace => ("{ ", "} "),
                Delimiter::Bracket => ("[", "] "),
                Delimiter::None => ("« ", "» "),
            };
            [open, &spelled(group.stream()), close].concat()
        }
        TokenTree::Punct(punct) if punct.spacing() == Spacing::Joint => punct.to_string(),
        token => format!("{token} "),
    };
    tokens.into_iter().map(spell).collect()
}

#[test]
fn each_generated_mistake_is_reported_once() {
    check(1_000, |chance| Some(grammar::case(chance)));
}

#[test]
fn promises_hold_for_mutated_tokens() {
    let corpus = Corpus::read();
    check(1_000, |chance| Some(mutation::of_tokens(&corpus, chance)));
}

#[test]
fn promises_hold_for_mutated_text() {
    let corpus = Corpus::read();
    check(1_000, |chance| mutation::of_text(&corpus, chance));
}
