//! Random nested sync calls on a test clock, compared with a model of the rules for outcomes and
//! events.

use crate::rule_checks::{check, config};
use crate::scenario::sync_scenario;
use crate::sync_scenario::play;

use proptest::proptest;

proptest! {
    #![proptest_config(config(1500))]

    // Fails if, for example,
    // - a success at the deadline loses to the caller, or a result after the return counts;
    // - an error counts at or after the deadline, or after the cancellation;
    // - a call starts at its deadline, or with a cancelled token;
    // - the grace is ignored, doubled or passes the enclosing deadline;
    // - an inherited deadline is reported as `TimedOut`, or the own limit wins at equal instants;
    // - a shared deadline, `inherit = false` or `cancel = false` has no effect;
    // - a success does not disarm its token;
    // - the outcome event is missing or follows the late event, or a late panic is not reported;
    // - a caller returns at another instant than the one at which its wait ends.
    #[test]
    fn every_sync_call_follows_the_rules(scenario in sync_scenario()) {
        let notes = play(&scenario);
        check(&scenario, &notes)?;
    }
}
