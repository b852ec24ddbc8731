//! Random nested calls in paused time, compared with a model of the rules for outcomes and events.

use crate::{rule_checks, scenario, scenario_run};

use proptest::proptest;
use rule_checks::{check, config};
use scenario::scenario;
use scenario_run::play;

proptest! {
    #![proptest_config(config(3000))]

    // Fails if, for example,
    // - a success at the deadline loses to the caller, or a result after the return counts;
    // - an error counts at or after the deadline, or after the cancellation;
    // - a call starts at its deadline, or with a cancelled token;
    // - the grace is ignored, doubled or passes the enclosing deadline;
    // - an inherited deadline is reported as `TimedOut`, or the own limit wins at equal instants;
    // - a shared deadline, `inherit = false` or `cancel = false` has no effect;
    // - a success does not disarm its token, or a dropped call does not cancel it;
    // - the outcome event is missing or follows the late event, or a late panic is not reported;
    // - an error that follows the error of the token, or of a nested call that ended with this one,
    //   is reported as a failure, or any other error as a stop;
    // - an inline call waits for ever, or keeps a late value.
    #[test]
    fn every_call_follows_the_rules(scenario in scenario()) {
        let notes = play(&scenario);
        check(&scenario, &notes)?;
    }
}
