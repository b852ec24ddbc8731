//! [`PolledParticipant`]: a future that a clock waits for.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use crate::sync::{Mutex, lock};
use crate::unwind;

#[cfg(feature = "tokio")]
use super::tokio_time::{self, Mirror};
use super::{Here, Kind, Next, Participant, VirtualClock, current_clock};

/// A future that a clock waits for. It runs from its creation to its first poll too.
pub(crate) struct PolledParticipant {
    participant: Participant,
    #[cfg(feature = "tokio")]
    mirror: Mirror,
    waker: Arc<PolledWaker>,
    as_waker: Waker,
}

/// Wakes the task of a polled participant. The participant runs from the wake-up on.
struct PolledWaker {
    here: Here,
    task: Mutex<Option<Waker>>,
}

impl Wake for PolledWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.here.wake();
        let task = lock(&self.task).clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl PolledParticipant {
    pub(crate) fn join(clock: &Arc<VirtualClock>, kind: Kind) -> Self {
        Self::of(Participant::join(clock, kind))
    }

    /// The operation of a call that starts on this thread.
    #[cfg(feature = "tokio")]
    pub(crate) fn of_operation(name: &'static str) -> Option<Self> {
        Participant::of_operation(name).map(Self::of)
    }

    fn of(participant: Participant) -> Self {
        let here = participant.here().clone();
        let task = Mutex::new(None);
        let waker = Arc::new(PolledWaker { here, task });
        let as_waker = Arc::clone(&waker).into();
        Self {
            participant,
            #[cfg(feature = "tokio")]
            mirror: Mirror::default(),
            waker,
            as_waker,
        }
    }

    /// Polls with `poll`, as the participant in `place` if there is one. It leaves when the future
    /// is ready.
    pub(crate) fn poll<T>(
        place: &mut Option<Self>,
        context: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let Some(this) = place else {
            return poll(context);
        };
        let polled = this.poll_inside(context, poll);
        if polled.is_ready() {
            *place = None;
        }
        polled
    }

    fn poll_inside<T>(
        &mut self,
        context: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let here = self.participant.here();
        let Here { clock, key } = here;
        here.fail_if_stalled();
        self.waker.set_task(context.waker());
        // A participant of the same clock polls this one: that one waits if this code blocks.
        let is_inside = current_clock() == Some(clock.id);
        #[cfg(feature = "tokio")]
        let tokio = tokio_time::paused_now();
        #[cfg(not(feature = "tokio"))]
        let tokio = None;
        let is_due = lock(&clock.state).begin_poll(*key, is_inside, tokio);
        let _on_clock = if is_inside {
            None
        } else {
            Some(self.participant.enter())
        };
        while let Some(waker) = clock.ring_due(*key) {
            unwind::contain(|| waker.wake());
        }
        if is_due {
            let polled = poll(&mut Context::from_waker(&self.as_waker));
            if polled.is_ready() {
                return polled;
            }
        }
        loop {
            let next = lock(&clock.state).end_poll(*key, &self.as_waker);
            match next {
                Next::Ring(waker) => unwind::contain(|| waker.wake()),
                Next::Hold => {
                    thread::yield_now();
                    context.waker().wake_by_ref();
                    break;
                }
                Next::Done | Next::Over => break,
            }
        }
        #[cfg(feature = "tokio")]
        if tokio.is_some() {
            let (now, next) = lock(&clock.state).mirrored();
            let mut context = Context::from_waker(&self.as_waker);
            self.mirror.set(now, next, &mut context);
        }
        Poll::Pending
    }
}

impl PolledWaker {
    fn set_task(&self, waker: &Waker) {
        let is_set = |task: &Waker| task.will_wake(waker);
        if lock(&self.task).as_ref().is_some_and(is_set) {
            return;
        }
        let waker = waker.clone();
        let before = lock(&self.task).replace(waker);
        unwind::drop_catching(before);
    }
}
