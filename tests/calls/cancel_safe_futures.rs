//! A success that an inline poll returns is never dropped, so a receiver loses no message at its
//! limit.

use crate::support;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use proptest::collection;
use proptest::prelude::{Just, ProptestConfig, Strategy, any};
use proptest::{prop_assert_eq, prop_oneof, proptest};
use support::{Gate, limit, paused_runtime, poll_once, record};
use timeout_runtime::{
    CallContext, CancelToken, Deadline, EventKind, Outcome, TimeoutError, timeout,
};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{sleep, sleep_until};

type Received = Result<Option<u32>, TimeoutError>;

/// The limit of every receiver, in the milliseconds of the schedule.
const LIMIT: u64 = 5;

#[timeout(name = "cancel_safe::plain", ms = LIMIT)]
async fn plain(messages: &mut UnboundedReceiver<u32>) -> Received {
    Ok(messages.recv().await)
}

#[timeout(name = "cancel_safe::token", ms = LIMIT)]
async fn with_token(messages: &mut UnboundedReceiver<u32>) -> Received {
    let _used = cancel_token.clone();
    Ok(messages.recv().await)
}

#[timeout(name = "cancel_safe::waits", ms = LIMIT)]
async fn watching_token(messages: &mut UnboundedReceiver<u32>) -> Received {
    tokio::select! {
        biased;
        () = cancel_token.cancelled() => Err(cancel_token.check().unwrap_err()),
        message = messages.recv() => Ok(message),
    }
}

#[timeout(name = "cancel_safe::grace", ms = LIMIT, grace = Duration::from_millis(2))]
async fn with_grace(messages: &mut UnboundedReceiver<u32>) -> Received {
    Ok(messages.recv().await)
}

#[timeout(name = "cancel_safe::shared", deadline = deadline)]
async fn shared(deadline: Deadline, messages: &mut UnboundedReceiver<u32>) -> Received {
    Ok(messages.recv().await)
}

#[timeout(name = "cancel_safe::inherited", secs = 60)]
async fn inherited(messages: &mut UnboundedReceiver<u32>) -> Received {
    plain_for_a_minute(messages).await
}

#[timeout(name = "cancel_safe::minute", secs = 60)]
async fn plain_for_a_minute(messages: &mut UnboundedReceiver<u32>) -> Received {
    Ok(messages.recv().await)
}

#[timeout(name = "cancel_safe::upstream", secs = 60, upstream = stop)]
async fn stoppable(stop: &CancelToken, messages: &mut UnboundedReceiver<u32>) -> Received {
    Ok(messages.recv().await)
}

#[timeout(name = "cancel_safe::boxed", ms = LIMIT)]
fn boxed(
    messages: &mut UnboundedReceiver<u32>,
) -> std::pin::Pin<Box<dyn Future<Output = Received> + '_>> {
    Box::pin(async move { Ok(messages.recv().await) })
}

/// How a receiver limits its wait for one message.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// Tokio's own timeout, which the other forms are compared with.
    Tokio,
    Plain,
    Token,
    WatchingToken,
    Grace,
    Shared,
    Inherited,
    Upstream,
    Boxed,
    Select,
}

const EVERY_FORM: [Form; 10] = [
    Form::Tokio,
    Form::Plain,
    Form::Token,
    Form::WatchingToken,
    Form::Grace,
    Form::Shared,
    Form::Inherited,
    Form::Upstream,
    Form::Boxed,
    Form::Select,
];

impl Form {
    /// Returns one message, `None` at the end of the channel, or an error at the limit.
    async fn next(self, messages: &mut UnboundedReceiver<u32>) -> Result<Option<u32>, ()> {
        let limit = Duration::from_millis(LIMIT);
        match self {
            Self::Tokio => tokio::time::timeout(limit, messages.recv())
                .await
                .map_err(drop),
            Self::Plain => plain(messages).await.map_err(drop),
            Self::Token => with_token(messages).await.map_err(drop),
            Self::WatchingToken => watching_token(messages).await.map_err(drop),
            Self::Grace => with_grace(messages).await.map_err(drop),
            Self::Shared => shared(Deadline::after(limit), messages).await.map_err(drop),
            Self::Inherited => {
                let context = CallContext::detached().with_deadline(Deadline::after(limit));
                context.scope(inherited(messages)).await.map_err(drop)
            }
            Self::Upstream => {
                let stop = CancelToken::new();
                let canceller = stop.clone();
                let cancels = async move {
                    sleep(limit).await;
                    canceller.cancel();
                    std::future::pending::<()>().await;
                };
                tokio::select! {
                    message = stoppable(&stop, messages) => message.map_err(drop),
                    () = cancels => unreachable!("it never ends"),
                }
            }
            Self::Boxed => boxed(messages).await.map_err(drop),
            Self::Select => tokio::select! {
                message = plain_for_a_minute(messages) => message.map_err(drop),
                () = sleep(limit) => Err(()),
            },
        }
    }
}

/// One event of the schedule, at a given millisecond.
#[derive(Clone, Copy, Debug)]
enum Step {
    Send,
    /// The executor polls this many milliseconds late.
    Late(u64),
}

fn schedule() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![
        3 => Just(Step::Send),
        1 => (1..12_u64).prop_map(Step::Late),
    ];
    // Many steps fall on the limit itself, one millisecond before it or one after it.
    let pause = prop_oneof![Just(LIMIT - 1), Just(LIMIT), Just(LIMIT + 1), 0..9_u64];
    collection::vec((pause, step), 1..20)
}

/// Messages that a receiver gets from `schedule`, and the number sent.
fn play<F>(
    schedule: &[(u64, Step)],
    receive: impl FnOnce(UnboundedReceiver<u32>) -> F,
) -> (Vec<u32>, u32)
where
    F: Future<Output = Vec<u32>>,
{
    let runtime = paused_runtime();
    runtime.block_on(async {
        let (sender, receiver) = unbounded_channel();
        let schedule = schedule.to_vec();
        let sends = async move {
            let mut sent = 0;
            let mut at = tokio::time::Instant::now();
            for (pause, step) in schedule {
                at += Duration::from_millis(pause);
                sleep_until(at).await;
                match step {
                    Step::Send => {
                        sender.send(sent).unwrap();
                        sent += 1;
                    }
                    Step::Late(by) => tokio::time::advance(Duration::from_millis(by)).await,
                }
            }
            sent
        };
        tokio::join!(receive(receiver), sends)
    })
}

async fn receive_all(form: Form, mut messages: UnboundedReceiver<u32>) -> Vec<u32> {
    let mut received = Vec::new();
    loop {
        match form.next(&mut messages).await {
            Ok(Some(message)) => received.push(message),
            Ok(None) => return received,
            Err(()) => {}
        }
    }
}

/// Like `receive_all`, with one future per message, awaited again after each timeout.
async fn receive_by_one_future(mut messages: UnboundedReceiver<u32>) -> Vec<u32> {
    let policy = limit("cancel_safe::by_reference", LIMIT);
    let mut received = Vec::new();
    loop {
        let mut next = pin!(messages.recv());
        let message = loop {
            let attempt: Received = policy
                .call_async(|_| async { Ok(next.as_mut().await) })
                .await;
            if let Ok(message) = attempt {
                break message;
            }
        };
        match message {
            Some(message) => received.push(message),
            None => return received,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// A message that was in the channel at the limit used to be received and dropped.
    #[test]
    fn every_message_is_received_once_as_with_tokios_timeout(schedule in schedule()) {
        for form in EVERY_FORM {
            let (received, sent) = play(&schedule, |messages| receive_all(form, messages));
            prop_assert_eq!(received, (0..sent).collect::<Vec<_>>(), "{:?}", form);
        }
    }

    /// A completed future used to be polled again by the next call.
    #[test]
    fn a_future_behind_a_reference_is_awaited_again_after_a_timeout(schedule in schedule()) {
        let (received, sent) = play(&schedule, receive_by_one_future);
        prop_assert_eq!(received, (0..sent).collect::<Vec<_>>());
    }

    /// A success of the last poll used to be reported as late.
    #[test]
    fn a_success_of_any_poll_is_the_outcome(late_by in 0..20_u64, with_listener in any::<bool>()) {
        let outcome = late_success(Duration::from_millis(late_by), with_listener);
        prop_assert_eq!(outcome, Poll::Ready(Some(7)));
    }
}

/// Polls a call once before its limit, and once `late_by` after it, when its operation is ready.
fn late_success(late_by: Duration, with_listener: bool) -> Poll<Option<u32>> {
    let recorder = with_listener.then(|| record("cancel_safe::late"));
    let runtime = paused_runtime();
    let outcome = runtime.block_on(async {
        let ready = Gate::new();
        let asked = ready.clone();
        let policy = limit("cancel_safe::late", LIMIT);
        let mut call = Box::pin(policy.outcome_async(move |_| {
            poll_fn(move |_| {
                if asked.is_open() {
                    Poll::Ready(Ok::<_, TimeoutError>(7))
                } else {
                    Poll::Pending
                }
            })
        }));
        assert!(poll_once(&mut call, &Gate::new()).is_pending());
        ready.open();
        tokio::time::advance(Duration::from_millis(LIMIT) + late_by).await;
        poll_once(&mut call, &Gate::new()).map(Outcome::success)
    });
    if let Some(recorder) = recorder {
        let events = recorder.events();
        assert_eq!(events.len(), 1, "there is no late event: {events:?}");
        assert_eq!(events[0].kind, EventKind::Succeeded);
        assert!(events[0].elapsed >= Duration::from_millis(LIMIT) + late_by);
    }
    outcome
}
