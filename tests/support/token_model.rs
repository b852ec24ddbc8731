//! Tokens, calls and their waiters, side by side with a model of them.

#![allow(unreachable_pub)] // Each test file uses its part.

use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use proptest::sample::Index;
use timeout_runtime::{CallContext, CancelToken, Cause, Outcome, Registration, TimeoutError};

use super::support::{SOON, eventually, limit};
use super::token_steps::{Keep, Step};
use super::waiters::{Count, Waiter, compare, expect_woken, pick_place};

type Cancellation = (Cause, Option<String>);

/// A token of the model.
struct Node {
    above: Vec<usize>,
    cancellation: Option<Cancellation>,
}

/// The result of an operation.
type End = Result<(), &'static str>;

struct Call {
    future: Pin<Box<dyn Future<Output = Outcome<(), &'static str>>>>,
    /// The result that the operation returns at its next poll.
    end: Arc<Mutex<Option<End>>>,
}

/// The tokens that the test holds, with their nodes.
type Handles = Arc<Mutex<Vec<(usize, CancelToken)>>>;

/// The causes of all held tokens, as seen by a callback of a node.
type Found = Arc<Mutex<Vec<(usize, Vec<Option<Cause>>)>>>;

#[derive(Default)]
pub struct Forest {
    nodes: Vec<Node>,
    handles: Handles,
    callbacks: Vec<Waiter<Option<Registration>>>,
    waiting: Vec<Waiter<Pin<Box<dyn Future<Output = ()>>>>>,
    calls: Vec<Waiter<Call>>,
    found: Found,
}

/// Reads the cause and the reason of a token, in every available way.
fn read(token: &CancelToken) -> Option<Cancellation> {
    let cause = token.cause();
    assert_eq!(token.is_cancelled(), cause.is_some());
    let error = token.check().err();
    assert_eq!(error.as_ref().map(TimeoutError::cause), cause);
    error.map(|error| cancellation(&error))
}

fn causes(handles: &[(usize, CancelToken)]) -> Vec<Option<Cause>> {
    handles.iter().map(|(_, token)| token.cause()).collect()
}

fn cancellation(error: &TimeoutError) -> Cancellation {
    (error.cause(), error.source().map(ToString::to_string))
}

fn poll<F: Future + ?Sized>(future: &mut Pin<Box<F>>, count: &Arc<Count>) -> Poll<F::Output> {
    let waker = Arc::clone(count).into();
    future.as_mut().poll(&mut Context::from_waker(&waker))
}

/// The model.
impl Forest {
    /// Whether `node` is `above` or one of its descendants.
    pub fn is_below(&self, node: usize, above: usize) -> bool {
        let mut below = vec![false; self.nodes.len()];
        below[above] = true;
        // A descendant has a higher index than its ancestors.
        for node in above + 1..=node {
            below[node] = self.nodes[node].above.iter().any(|&above| below[above]);
        }
        below[node]
    }

    /// Whether the node, or a descendant, is held.
    fn is_alive(&self, node: usize) -> bool {
        let handles = self.handles.lock().unwrap();
        let held = handles.iter().map(|&(held, _)| held);
        let waiting = self.waiting.iter().filter(|waiter| waiter.place.is_some());
        let calls = self.calls.iter().filter(|waiter| waiter.place.is_some());
        held.chain(waiting.map(|waiter| waiter.node))
            .chain(calls.map(|waiter| waiter.node))
            .any(|held| self.is_below(held, node))
    }

    /// The nodes that a cancellation of `node` reaches.
    fn reached_from(&self, node: usize) -> Vec<usize> {
        let all = 0..self.nodes.len();
        all.filter(|&other| self.is_below(other, node) && self.is_alive(other))
            .filter(|&other| self.nodes[other].cancellation.is_none())
            .collect()
    }

    fn cancel(&mut self, node: usize, cancellation: &Cancellation) {
        let cancelled = self.reached_from(node);
        for &node in &cancelled {
            self.nodes[node].cancellation = Some(cancellation.clone());
        }
        self.expect_woken(&cancelled);
    }

    fn expect_woken(&mut self, cancelled: &[usize]) {
        expect_woken(&mut self.callbacks, cancelled);
        expect_woken(&mut self.waiting, cancelled);
        expect_woken(&mut self.calls, cancelled);
    }

    /// Adds a node for a new token.
    fn grow(&mut self, above: Vec<usize>, token: CancelToken) {
        // If several parents are cancelled, the reason may come from any of them.
        let mut cancellations = above
            .iter()
            .filter_map(|&node| self.nodes[node].cancellation.clone());
        let cancellation = read(&token);
        match &cancellation {
            Some(cancellation) => {
                assert!(above.is_empty() || cancellations.any(|above| above == *cancellation));
            }
            None => assert_eq!(cancellations.next(), None),
        }
        drop(cancellations);
        self.nodes.push(Node {
            above,
            cancellation,
        });
        let node = self.nodes.len() - 1;
        self.handles.lock().unwrap().push((node, token));
    }
}

/// The steps.
impl Forest {
    pub fn handles(&self) -> Vec<(usize, CancelToken)> {
        self.handles.lock().unwrap().clone()
    }

    fn pick(&self, index: Index) -> Option<(usize, CancelToken)> {
        let handles = self.handles.lock().unwrap();
        (!handles.is_empty()).then(|| index.get(&handles).clone())
    }

    pub fn take(&mut self, step: Step) {
        self.try_take(step);
    }

    /// Returns `None` if no token, waiter or call exists for the step.
    fn try_take(&mut self, step: Step) -> Option<()> {
        match step {
            Step::New => self.grow(Vec::new(), CancelToken::new()),
            Step::Expired => self.grow(Vec::new(), expired()),
            Step::Linked(parents) => {
                let parents: Option<Vec<_>> =
                    parents.into_iter().map(|index| self.pick(index)).collect();
                let (above, parents): (Vec<_>, Vec<_>) = parents?.into_iter().unzip();
                let token = match &parents[..] {
                    [parent] => parent.child(),
                    parents => CancelToken::linked(parents),
                };
                drop(parents);
                self.grow(above, token);
            }
            Step::Clone(index) => {
                let handle = self.pick(index)?;
                self.handles.lock().unwrap().push(handle);
            }
            Step::Drop(index) => {
                let mut handles = self.handles.lock().unwrap();
                let place = (!handles.is_empty()).then(|| index.index(handles.len()))?;
                drop(handles.swap_remove(place));
            }
            Step::Cancel(index, reason) => {
                let (node, token) = self.pick(index)?;
                let reason = reason.map(|number| number.to_string());
                self.cancel(node, &(Cause::Cancelled, reason.clone()));
                match reason {
                    Some(reason) => token.cancel_with(reason),
                    None => token.cancel(),
                }
            }
            Step::Callback(index, keep) => self.add_callback(self.pick(index)?, keep),
            Step::Unregister(index) => {
                let place = pick_place(&self.callbacks, index)?;
                let node = self.callbacks[place].node;
                let is_cancelled = self.nodes[node].cancellation.is_some();
                // A dropped token allows either result.
                let is_alive = self.is_alive(node);
                let registration = self.callbacks[place].place.as_mut()?.take()?;
                self.callbacks[place].place = None;
                let prevented = registration.unregister();
                assert!(!is_alive || prevented != is_cancelled);
            }
            Step::Wait(index) => {
                let (node, token) = self.pick(index)?;
                let (count, mut future) = (Arc::default(), Box::pin(token.cancelled_owned()));
                let is_ready = poll(&mut future, &count).is_ready();
                assert_eq!(is_ready, self.nodes[node].cancellation.is_some());
                self.waiting.push(Waiter {
                    node,
                    count,
                    expected: 0,
                    place: Some(future),
                });
            }
            Step::StopWaiting(index) => {
                let place = pick_place(&self.waiting, index)?;
                drop(self.waiting[place].place.take());
            }
            Step::Call(index) => self.start_call(self.pick(index)?),
            Step::PollCall(index) => {
                let place = pick_place(&self.calls, index)?;
                self.poll_call(place, None);
            }
            Step::EndCall(index, succeeds) => {
                let place = pick_place(&self.calls, index)?;
                let end = if succeeds { Ok(()) } else { Err("stopped") };
                self.poll_call(place, Some(end));
            }
            Step::DropCall(index) => {
                let place = pick_place(&self.calls, index)?;
                self.cancel(self.calls[place].node, &(Cause::Cancelled, None));
                drop(self.calls[place].place.take());
            }
        }
        Some(())
    }

    fn add_callback(&mut self, (node, token): (usize, CancelToken), keep: Keep) {
        let (count, handles, found) = (
            Arc::<Count>::default(),
            Arc::clone(&self.handles),
            Arc::clone(&self.found),
        );
        let called = Arc::clone(&count);
        let registration = token.on_cancel(move || {
            let causes = causes(&handles.lock().unwrap());
            found.lock().unwrap().push((node, causes));
            called.add();
        });
        let expected = usize::from(self.nodes[node].cancellation.is_some());
        let place = match keep {
            Keep::Registered => Some(Some(registration)),
            Keep::Forgotten => {
                registration.forget();
                Some(None)
            }
            Keep::TakenBack => None,
        };
        self.callbacks.push(Waiter {
            node,
            count,
            expected,
            place,
        });
    }

    fn start_call(&mut self, (above, parent): (usize, CancelToken)) {
        let end = Arc::<Mutex<Option<End>>>::default();
        let token = Arc::<Mutex<Option<CancelToken>>>::default();
        let (given, operation) = (Arc::clone(&token), Arc::clone(&end));
        let call = limit("random_trees::call", 3_600_000).outcome_async(move |token| {
            *given.lock().unwrap() = Some(token);
            poll_fn(move |_| {
                let end = operation.lock().unwrap().take();
                end.map_or(Poll::Pending, Poll::Ready)
            })
        });
        let context = CallContext::detached().with_token(&parent);
        let (count, mut future) = (Arc::default(), Box::pin(context.scope(call)));
        drop((context, parent));
        let polled = poll(&mut future, &count);
        let Some(token) = token.lock().unwrap().take() else {
            let Poll::Ready(Outcome::NotStarted(error)) = polled else {
                panic!("not started, and yet {polled:?}");
            };
            let above = self.nodes[above].cancellation.clone();
            let (cause, reason) = above.expect("it has ended above");
            assert_eq!(cancellation(&error), (entering(cause), reason));
            return;
        };
        assert!(polled.is_pending());
        let has_ended = self.nodes[above].cancellation.is_some();
        assert!(!has_ended, "it starts although it has ended above");
        self.grow(vec![above], token);
        self.calls.push(Waiter {
            node: self.nodes.len() - 1,
            count,
            expected: 0,
            place: Some(Call { future, end }),
        });
    }

    fn poll_call(&mut self, place: usize, end: Option<End>) {
        let waiter = &mut self.calls[place];
        let Some(call) = &mut waiter.place else {
            return;
        };
        *call.end.lock().unwrap() = end;
        let polled = poll(&mut call.future, &waiter.count);
        let cancelled = &self.nodes[waiter.node].cancellation;
        let is_as_ruled = match (&polled, end) {
            (Poll::Ready(Outcome::Success(())), Some(Ok(()))) => true,
            (Poll::Pending, None) | (Poll::Ready(Outcome::Failure("stopped")), Some(Err(_))) => {
                cancelled.is_none()
            }
            (Poll::Ready(Outcome::Cancelled(error)), None | Some(Err(_))) => {
                Some(cancellation(error)) == *cancelled
            }
            _ => false,
        };
        assert!(is_as_ruled, "{end:?} gives {polled:?} after {cancelled:?}");
        if polled.is_ready() {
            waiter.place = None;
        }
    }
}

fn entering(cause: Cause) -> Cause {
    match cause {
        Cause::TimedOut => Cause::DeadlineExceeded,
        other => other,
    }
}

/// A token of a call whose limit has passed.
fn expired() -> CancelToken {
    let mut kept = None;
    let outcome = limit("random_trees::expired", 1).inline().outcome(|token| {
        let _ = token.wait_timeout(SOON);
        kept = Some(token);
        Err::<(), _>(())
    });
    assert!(matches!(outcome, Outcome::TimedOut(_)));
    kept.expect("it was started")
}

/// The comparison.
impl Forest {
    pub fn check(&self) {
        let handles = self.handles();
        for (node, token) in &handles {
            assert_eq!(read(token), self.nodes[*node].cancellation, "token {node}");
        }
        self.check_counts();
        // A callback sees all descendants cancelled.
        let causes = causes(&handles);
        for (node, found) in self.found.lock().unwrap().drain(..) {
            assert_eq!(found, causes, "called for token {node}");
        }
    }

    fn wait_for_callbacks(&self) {
        // Callbacks run on background threads.
        eventually("all callbacks have run", || {
            let mut callbacks = self.callbacks.iter();
            callbacks.all(|waiter| waiter.count.get() >= waiter.expected)
        });
    }

    fn check_counts(&self) {
        self.wait_for_callbacks();
        compare("callback", &self.callbacks);
        compare("waiter", &self.waiting);
        compare("call", &self.calls);
    }

    /// Takes over the state of all descendants of `cancelled`, which were cancelled simultaneously.
    /// The reason of each cancellation is its index in the list.
    pub fn adopt(&mut self, cancelled: &[usize]) {
        let handles = self.handles();
        let mut reached: Vec<usize> = Vec::new();
        for &node in cancelled {
            reached.extend(self.reached_from(node));
        }
        reached.sort_unstable();
        reached.dedup();
        for &node in &reached {
            let held = handles.iter().find(|(held, _)| *held == node);
            let cancellation = held.and_then(|(_, token)| read(token));
            if let Some((cause, reason)) = &cancellation {
                assert_eq!(*cause, Cause::Cancelled);
                let reason: usize = reason.as_ref().unwrap().parse().unwrap();
                assert!(self.is_below(node, cancelled[reason]), "token {node}");
            }
            self.nodes[node].cancellation = cancellation.or(Some((Cause::Cancelled, None)));
        }
        self.expect_woken(&reached);
        self.wait_for_callbacks();
        for (node, found) in self.found.lock().unwrap().drain(..) {
            let below = handles.iter().zip(found);
            let mut below = below.filter(|((other, _), _)| self.is_below(*other, node));
            assert!(
                below.all(|(_, cause)| cause.is_some()),
                "called for token {node}"
            );
        }
    }

    /// Drops all tokens, which wakes no waiter.
    pub fn drop_all(&self) {
        self.handles.lock().unwrap().clear();
        self.check_counts();
    }
}
