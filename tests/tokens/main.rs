//! Cancellation tokens: trees, causes, waiters and callbacks.

#[macro_use]
#[path = "../support/annotated.rs"]
mod annotated;
#[path = "../support/background.rs"]
mod background;
#[path = "../support/call_error.rs"]
mod call_error;
#[path = "../support/concurrent.rs"]
mod concurrent;
#[path = "../support/own_process.rs"]
mod own_process;
#[path = "../support/panics.rs"]
mod panics;
#[path = "../support/random.rs"]
mod random;
#[path = "../support/socket_pairs.rs"]
mod socket_pairs;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/token_model.rs"]
mod token_model;
#[path = "../support/token_steps.rs"]
mod token_steps;
#[path = "../support/waiters.rs"]
mod waiters;

mod blocking_waits;
mod callbacks_and_wakers;
mod cancel_token;
mod cancellation_races;
mod causes_are_kept;
mod checks_without_a_token;
mod connections;
mod deep_and_wide_tokens;
mod done_channels;
mod in_time_disarms;
mod interrupted_futures;
mod interrupted_work;
mod listeners;
mod random_trees;
mod reasons_are_kept;
mod shared_sockets;
mod slow_callbacks;
mod sockets;
mod stops_that_block;
mod tokens_convert;
mod tokens_without_waiters;
mod unregister_and_wait;
mod upstream_ends_the_wait;
