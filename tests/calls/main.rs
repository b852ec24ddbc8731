//! Tests of calls: outcomes, results and the kinds of functions that can be annotated.

#[macro_use]
#[path = "../support/annotated.rs"]
mod annotated;
#[path = "../support/acts.rs"]
mod acts;
#[path = "../support/contested.rs"]
mod contested;
#[path = "../support/crowd.rs"]
mod crowd;
#[path = "../support/endings.rs"]
mod endings;
#[path = "../support/fault.rs"]
mod fault;
#[path = "../support/own_process.rs"]
mod own_process;
#[path = "../support/panics.rs"]
mod panics;
#[path = "../support/rules.rs"]
mod rules;
#[path = "../support/scenario.rs"]
mod scenario;
#[path = "../support/seeded.rs"]
mod seeded;
#[path = "../support/seen.rs"]
mod seen;
#[path = "../support/stage.rs"]
mod stage;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/user_code.rs"]
mod user_code;

mod argument_shapes;
mod attribute_upstream;
mod blocking_async_body;
mod callers_leave_first;
mod cancel_false;
mod cancel_or_not;
mod cancel_safe_futures;
mod cooperative_budget;
mod endings_as_values;
mod failures_pass_through;
mod functions_from_macros;
mod lifetimes_stay;
mod never_early;
mod no_panic_is_lost;
mod nothing_is_lost;
mod nothing_starts_late;
mod on_late;
mod one_verdict;
mod only_a_success_may_tie;
mod returned_futures;
mod rules_in_virtual_time;
mod stressed_calls;
mod table_of_endings;
mod timeout_policy;
mod unobserved_calls;
mod user_code_around_a_call;
mod user_code_changes_no_verdict;
mod user_code_reenters;
mod within;
