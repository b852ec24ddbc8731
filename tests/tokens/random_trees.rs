//! Random token trees with calls in them, checked against a simple model: which token is cancelled,
//! with which cause, and how often.

use crate::{token_model, token_steps};
use std::sync::Barrier;
use std::thread;

use proptest::prelude::{ProptestConfig, any};
use proptest::sample::Index;
use proptest::{collection, proptest};
use token_model::Forest;
use token_steps::{Step, steps};

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        max_shrink_time: 60_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(400))]

    /// After each step every token is in the state of the model, and every waiter was woken once or
    /// not at all.
    #[test]
    fn every_cancellation_reaches_all_descendants_once_with_its_cause(steps in steps(80)) {
        let mut forest = Forest::default();
        for step in steps {
            forest.take(step);
            forest.check();
        }
        forest.drop_all();
    }

    /// A cancel that returns has cancelled all descendants, also while others cancel; all tokens
    /// keep one reason.
    #[test]
    fn simultaneous_cancels_reach_all_descendants_once(
        steps in steps(60),
        cancels in collection::vec(any::<Index>(), 2..4),
    ) {
        let mut forest = Forest::default();
        for step in steps.into_iter().filter(|step| !matches!(step, Step::Cancel(..) | Step::DropCall(_))) {
            forest.take(step);
            forest.check();
        }
        let handles = forest.handles();
        if handles.is_empty() {
            return Ok(());
        }
        let picked: Vec<_> = cancels.iter().map(|index| index.get(&handles).clone()).collect();
        let both = Barrier::new(picked.len());
        thread::scope(|scope| {
            for (number, (node, token)) in picked.iter().enumerate() {
                let below: Vec<_> = handles.iter().filter(|(other, _)| forest.is_below(*other, *node)).collect();
                let both = &both;
                scope.spawn(move || {
                    both.wait();
                    token.cancel_with(number.to_string());
                    assert!(below.iter().all(|(_, token)| token.is_cancelled()));
                });
            }
        });
        drop(handles);
        let cancelled: Vec<usize> = picked.into_iter().map(|(node, _)| node).collect();
        forest.adopt(&cancelled);
        forest.check();
    }
}
