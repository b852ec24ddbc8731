//! Tokens, calls and those who wait for them, next to a model of them all.

#![allow(unreachable_pub)] // Each test file uses its part.

use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake};

use proptest::sample::Index;
use timeout_runtime::{
    CallContext, CancelToken, CancelledOwned, Cause, Outcome, Registration, TimeoutError,
};

use super::steps::{Keep, Step};
use super::support::{SOON, eventually, limit};
use super::told::{Count, Told, compare, pick_place, tell};

type Signal = (Cause, Option<String>);

/// A token as the model has it.
struct Node {
    above: Vec<usize>,
    signal: Option<Signal>,
}

/// What an operation ends with.
type End = Result<(), &'static str>;

struct Call {
    future: Pin<Box<dyn Future<Output = Outcome<(), &'static str>>>>,
    /// What the operation is to end with at the next poll.
    end: Arc<Mutex<Option<End>>>,
}

/// The tokens that somebody holds, by their nodes.
type Handles = Arc<Mutex<Vec<(usize, CancelToken)>>>;

/// The causes of all handles' tokens, as a callback of a node has found them.
type Found = Arc<Mutex<Vec<(usize, Vec<Option<Cause>>)>>>;

#[derive(Default)]
pub struct Forest {
    nodes: Vec<Node>,
    handles: Handles,
    callbacks: Vec<Told<Option<Registration>>>,
    waiting: Vec<Told<Pin<Box<CancelledOwned>>>>,
    calls: Vec<Told<Call>>,
    found: Found,
}

/// Reads the signal of a token, in all the ways there are.
fn read(token: &CancelToken) -> Option<Signal> {
    let cause = token.cause();
    assert_eq!(token.is_cancelled(), cause.is_some());
    let error = token.check().err();
    assert_eq!(error.as_ref().map(TimeoutError::cause), cause);
    error.map(|error| signal(&error))
}

fn causes(handles: &[(usize, CancelToken)]) -> Vec<Option<Cause>> {
    handles.iter().map(|(_, token)| token.cause()).collect()
}

fn signal(error: &TimeoutError) -> Signal {
    (error.cause(), error.source().map(ToString::to_string))
}

fn poll<F: Future + ?Sized>(future: &mut Pin<Box<F>>, count: &Arc<Count>) -> Poll<F::Output> {
    let waker = Arc::clone(count).into();
    future.as_mut().poll(&mut Context::from_waker(&waker))
}

/// The model.
impl Forest {
    /// Whether `node` is `above`, or linked to it by any line.
    pub fn is_below(&self, node: usize, above: usize) -> bool {
        let mut below = vec![false; self.nodes.len()];
        below[above] = true;
        // What is below comes later.
        for node in above + 1..=node {
            below[node] = self.nodes[node].above.iter().any(|&above| below[above]);
        }
        below[node]
    }

    /// Whether anybody holds the node, or one below it.
    fn is_alive(&self, node: usize) -> bool {
        let handles = self.handles.lock().unwrap();
        let held = handles.iter().map(|&(held, _)| held);
        let waiting = self.waiting.iter().filter(|told| told.place.is_some());
        let calls = self.calls.iter().filter(|told| told.place.is_some());
        held.chain(waiting.map(|told| told.node))
            .chain(calls.map(|told| told.node))
            .any(|held| self.is_below(held, node))
    }

    /// Those that a signal of `node` reaches.
    fn reached_from(&self, node: usize) -> Vec<usize> {
        let all = 0..self.nodes.len();
        all.filter(|&other| self.is_below(other, node) && self.is_alive(other))
            .filter(|&other| self.nodes[other].signal.is_none())
            .collect()
    }

    fn fire(&mut self, node: usize, signal: &Signal) {
        let fired = self.reached_from(node);
        for &node in &fired {
            self.nodes[node].signal = Some(signal.clone());
        }
        self.tell(&fired);
    }

    fn tell(&mut self, fired: &[usize]) {
        tell(&mut self.callbacks, fired);
        tell(&mut self.waiting, fired);
        tell(&mut self.calls, fired);
    }

    /// A node that `token` shows for the first time.
    fn grow(&mut self, above: Vec<usize>, token: CancelToken) {
        // Of several above that have fired, any may be the one.
        let mut signals = above
            .iter()
            .filter_map(|&node| self.nodes[node].signal.clone());
        let signal = read(&token);
        match &signal {
            Some(signal) => assert!(above.is_empty() || signals.any(|above| above == *signal)),
            None => assert_eq!(signals.next(), None),
        }
        drop(signals);
        self.nodes.push(Node { above, signal });
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

    /// `None` if there is nothing to take it with.
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
                self.fire(node, &(Cause::Cancelled, reason.clone()));
                match reason {
                    Some(reason) => token.cancel_with(reason),
                    None => token.cancel(),
                }
            }
            Step::Callback(index, keep) => self.add_callback(self.pick(index)?, keep),
            Step::Unregister(index) => {
                let place = pick_place(&self.callbacks, index)?;
                let node = self.callbacks[place].node;
                let has_fired = self.nodes[node].signal.is_some();
                // Of a token that is gone nothing is said.
                let is_alive = self.is_alive(node);
                let registration = self.callbacks[place].place.as_mut()?.take()?;
                self.callbacks[place].place = None;
                let prevented = registration.unregister();
                assert!(!is_alive || prevented != has_fired);
            }
            Step::Wait(index) => {
                let (node, token) = self.pick(index)?;
                let (count, mut future) = (Arc::default(), Box::pin(token.cancelled_owned()));
                let is_ready = poll(&mut future, &count).is_ready();
                assert_eq!(is_ready, self.nodes[node].signal.is_some());
                self.waiting.push(Told {
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
            Step::EndCall(index, answers) => {
                let place = pick_place(&self.calls, index)?;
                let end = if answers { Ok(()) } else { Err("stopped") };
                self.poll_call(place, Some(end));
            }
            Step::DropCall(index) => {
                let place = pick_place(&self.calls, index)?;
                self.fire(self.calls[place].node, &(Cause::Cancelled, None));
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
            called.wake();
        });
        let expected = usize::from(self.nodes[node].signal.is_some());
        let place = match keep {
            Keep::Registered => Some(Some(registration)),
            Keep::Forgotten => {
                registration.forget();
                Some(None)
            }
            Keep::TakenBack => None,
        };
        self.callbacks.push(Told {
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
            let above = self.nodes[above].signal.clone();
            let (cause, reason) = above.expect("it has ended above");
            assert_eq!(signal(&error), (entering(cause), reason));
            return;
        };
        assert!(polled.is_pending());
        let has_ended = self.nodes[above].signal.is_some();
        assert!(!has_ended, "it starts although it has ended above");
        self.grow(vec![above], token);
        self.calls.push(Told {
            node: self.nodes.len() - 1,
            count,
            expected: 0,
            place: Some(Call { future, end }),
        });
    }

    fn poll_call(&mut self, place: usize, end: Option<End>) {
        let told = &mut self.calls[place];
        let Some(call) = &mut told.place else { return };
        *call.end.lock().unwrap() = end;
        let polled = poll(&mut call.future, &told.count);
        let fired = &self.nodes[told.node].signal;
        let is_as_ruled = match (&polled, end) {
            (Poll::Ready(Outcome::Success(())), Some(Ok(()))) => true,
            (Poll::Pending, None) | (Poll::Ready(Outcome::Failure("stopped")), Some(Err(_))) => {
                fired.is_none()
            }
            (Poll::Ready(Outcome::Cancelled(error)), None | Some(Err(_))) => {
                Some(signal(error)) == *fired
            }
            _ => false,
        };
        assert!(is_as_ruled, "{end:?} gives {polled:?} after {fired:?}");
        if polled.is_ready() {
            told.place = None;
        }
    }
}

fn entering(cause: Cause) -> Cause {
    match cause {
        Cause::TimedOut => Cause::DeadlineExceeded,
        other => other,
    }
}

/// The token of a call whose limit has passed.
fn expired() -> CancelToken {
    let mut kept = None;
    let outcome = limit("random_trees::expired", 1).outcome_inline(|token| {
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
            assert_eq!(read(token), self.nodes[*node].signal, "token {node}");
        }
        self.check_counts();
        // Whoever is called finds everything below fired already.
        let causes = causes(&handles);
        for (node, found) in self.found.lock().unwrap().drain(..) {
            assert_eq!(found, causes, "called for token {node}");
        }
    }

    fn check_counts(&self) {
        // The callbacks of a call that was dropped run on a worker.
        eventually("all callbacks have run", || {
            let mut callbacks = self.callbacks.iter();
            callbacks.all(|told| told.count.get() >= told.expected)
        });
        compare("callback", &self.callbacks);
        compare("waiter", &self.waiting);
        compare("call", &self.calls);
    }

    /// Takes over what has become of the tokens below `cancelled`, each of which was cancelled, at once, by its place in the list.
    pub fn adopt(&mut self, cancelled: &[usize]) {
        let handles = self.handles();
        for (node, found) in self.found.lock().unwrap().drain(..) {
            let below = handles.iter().zip(found);
            let mut below = below.filter(|((other, _), _)| self.is_below(*other, node));
            assert!(
                below.all(|(_, cause)| cause.is_some()),
                "called for token {node}"
            );
        }
        let mut fired: Vec<usize> = Vec::new();
        for &node in cancelled {
            fired.extend(self.reached_from(node));
        }
        fired.sort_unstable();
        fired.dedup();
        for &node in &fired {
            let held = handles.iter().find(|(held, _)| *held == node);
            let signal = held.and_then(|(_, token)| read(token));
            if let Some((cause, reason)) = &signal {
                assert_eq!(*cause, Cause::Cancelled);
                let reason: usize = reason.as_ref().unwrap().parse().unwrap();
                assert!(self.is_below(node, cancelled[reason]), "token {node}");
            }
            self.nodes[node].signal = signal.or(Some((Cause::Cancelled, None)));
        }
        self.tell(&fired);
    }

    /// Lets go of all tokens, which tells nobody anything.
    pub fn let_go(&self) {
        self.handles.lock().unwrap().clear();
        self.check_counts();
    }
}
