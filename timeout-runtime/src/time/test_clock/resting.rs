//! [`Resting`]: waits for something that only the waiting code can read, such as a channel.

use std::time::Duration;

use super::{Here, here};

/// The real time between two looks. Time moves only after a look.
const STEP: Duration = Duration::from_micros(200);

/// The waits of a participant between its looks at a channel or a condition.
pub(crate) struct Resting {
    /// The participant, and the activity before its next look.
    here: Option<(Here, u64)>,
}

impl Resting {
    /// The participant of this thread, if there is one. Its first look follows.
    pub(crate) fn here() -> Self {
        Self {
            here: here().map(|here| {
                let activity = here.activity();
                (here, activity)
            }),
        }
    }

    /// Waits with `wait` until the next look. On a test clock, `wait` gets the longest wait.
    pub(crate) fn rest<T>(&mut self, wait: impl FnOnce(Option<Duration>) -> T) -> T {
        let Some((here, activity)) = &mut self.here else {
            return wait(None);
        };
        here.fail_if_stalled();
        if !here.rest(*activity) {
            return wait(None);
        }
        let waited = wait(Some(STEP));
        here.resume();
        *activity = here.activity();
        waited
    }
}
