//! Random steps for a forest of tokens.

#![allow(unreachable_pub)] // Each test file uses its part.

use proptest::collection;
use proptest::prelude::{Just, Strategy, any};
use proptest::prop_oneof;
use proptest::sample::Index;

/// One step; an index picks one of the existing tokens, waiters or calls.
#[derive(Clone, Debug)]
pub enum Step {
    New,
    /// A token whose limit has passed.
    Expired,
    Linked(Vec<Index>),
    Clone(Index),
    Drop(Index),
    /// With a reason, if there is a number.
    Cancel(Index, Option<u8>),
    Callback(Index, Keep),
    Unregister(Index),
    Wait(Index),
    StopWaiting(Index),
    Call(Index),
    PollCall(Index),
    /// The operation ends by itself: `true` for a success, `false` for an error.
    EndCall(Index, bool),
    DropCall(Index),
}

#[derive(Clone, Copy, Debug)]
pub enum Keep {
    Registered,
    Forgotten,
    TakenBack,
}

pub fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let index = any::<Index>;
    let keep = prop_oneof![
        Just(Keep::Registered),
        Just(Keep::Forgotten),
        Just(Keep::TakenBack)
    ];
    let step = prop_oneof![
        3 => Just(Step::New),
        1 => Just(Step::Expired),
        8 => collection::vec(index(), 1..4).prop_map(Step::Linked),
        3 => index().prop_map(Step::Clone),
        4 => index().prop_map(Step::Drop),
        2 => (index(), any::<Option<u8>>()).prop_map(|(index, reason)| Step::Cancel(index, reason)),
        4 => (index(), keep).prop_map(|(index, keep)| Step::Callback(index, keep)),
        1 => index().prop_map(Step::Unregister),
        4 => index().prop_map(Step::Wait),
        1 => index().prop_map(Step::StopWaiting),
        3 => index().prop_map(Step::Call),
        2 => index().prop_map(Step::PollCall),
        1 => (index(), any::<bool>()).prop_map(|(index, succeeds)| Step::EndCall(index, succeeds)),
        1 => index().prop_map(Step::DropCall),
    ];
    collection::vec(step, 1..most)
}
