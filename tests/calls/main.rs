//! Tests of calls: outcomes, results and the kinds of functions that can be annotated.

#[macro_use]
#[path = "../support/annotated.rs"]
mod annotated;
#[path = "../support/call_error.rs"]
mod call_error;
#[path = "../support/calls_at_the_limit.rs"]
mod calls_at_the_limit;
#[path = "../support/concurrent.rs"]
mod concurrent;
#[path = "../support/observations.rs"]
mod observations;
#[path = "../support/outcomes.rs"]
mod outcomes;
#[path = "../support/own_process.rs"]
mod own_process;
#[path = "../support/panics.rs"]
mod panics;
#[path = "../support/random.rs"]
mod random;
#[path = "../support/random_calls.rs"]
mod random_calls;
#[path = "../support/rule_checks.rs"]
mod rule_checks;
#[path = "../support/rules.rs"]
mod rules;
#[path = "../support/scenario.rs"]
mod scenario;
#[path = "../support/scenario_calls.rs"]
mod scenario_calls;
#[path = "../support/scenario_run.rs"]
mod scenario_run;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/sync_scenario.rs"]
mod sync_scenario;
#[path = "../support/user_code.rs"]
mod user_code;

mod argument_shapes;
mod attribute_upstream;
mod blocking_async_body;
mod callers_return_at_the_deadline;
mod cancel_false;
mod cancel_or_not;
mod cancel_safe_futures;
mod cooperative_budget;
mod failures_pass_through;
mod functions_from_macros;
mod lifetimes_stay;
mod never_early;
mod no_panic_is_lost;
mod nothing_is_lost;
mod nothing_starts_late;
mod on_late;
mod one_outcome;
mod only_a_success_may_tie;
mod outcomes_as_values;
mod returned_futures;
mod rules_in_virtual_time;
mod rules_of_sync_calls;
mod stressed_calls;
mod table_of_outcomes;
mod timeout_policy;
mod unobserved_calls;
mod user_code_around_a_call;
mod user_code_changes_no_outcome;
mod user_code_reenters;
mod within;
