//! Functions with arguments of every shape and name compile and pass their arguments on.

use crate::support;
use std::time::Duration;

use futures::executor::block_on;
use support::{record, until_cancelled};
use timeout_runtime::{CallStatus, CancelToken, TimeoutError, timeout};

type CallResult = Result<u32, TimeoutError>;

struct Request {
    id: u32,
    #[allow(dead_code)] // Patterns leave this field out.
    rest: String,
}

fn request(id: u32) -> Request {
    Request {
        id,
        rest: "rest".to_owned(),
    }
}

/// Functions that run on a worker and own their arguments.
mod on_worker {
    use super::*;

    #[timeout(secs = 60)]
    pub(super) fn tuple((a, mut b): (u32, u32)) -> CallResult {
        b += 1;
        Ok(a + b)
    }

    #[timeout(secs = 60)]
    pub(super) fn unnamed(_: u8, _: String, kept: u32) -> CallResult {
        Ok(kept)
    }

    #[timeout(secs = 60)]
    pub(super) fn fields(Request { id, .. }: Request) -> CallResult {
        Ok(id)
    }

    #[timeout(secs = 60)]
    pub(super) fn deep([first, .., Request { id: ref last, .. }]: [Request; 3]) -> CallResult {
        Ok(first.id + last)
    }

    #[timeout(secs = 60)]
    pub(super) fn changed(mut text: String, r#type: u32) -> CallResult {
        text.push('!');
        Ok(r#type + u32::try_from(text.len()).unwrap())
    }

    #[timeout(secs = 60)]
    #[allow(clippy::too_many_arguments)]
    pub(super) fn named(
        result: u32,
        f: u32,
        token: u32,
        deadline: u32,
        limit: u32,
        rt: u32,
        name: u32,
        this: u32,
        __timeout_inner: u32,
    ) -> CallResult {
        assert!(!cancel_token.is_cancelled());
        Ok(result + f + token + deadline + limit + rt + name + this + __timeout_inner)
    }

    #[timeout(secs = 60)]
    #[allow(clippy::too_many_arguments, clippy::used_underscore_binding)]
    pub(super) fn named_as_within(
        ask: u32,
        op: u32,
        answer: u32,
        __options: u32,
        __token: u32,
        __value: u32,
        __fallback: u32,
        __form: u32,
        __timeout_p: u32,
    ) -> CallResult {
        assert!(!cancel_token.is_cancelled());
        Ok(ask + op + answer + __options + __token + __value + __fallback + __form + __timeout_p)
    }

    #[timeout(secs = 60)]
    pub(super) fn r#match(r#fn: u32) -> CallResult {
        Ok(r#fn)
    }

    #[timeout(name = "argument_shapes::loop", secs = 60)]
    pub(super) fn r#loop() -> CallResult {
        Ok(1)
    }

    #[timeout(secs = 60)]
    pub(super) fn recursive(depth: u32) -> CallResult {
        match depth {
            0 => Ok(0),
            _ => Ok(recursive(depth - 1)? + 1),
        }
    }
}

/// Inline functions, which borrow their arguments.
mod in_place {
    use super::*;

    #[timeout(secs = 60)]
    pub(super) async fn tuple(&(a, mut b): &(u32, u32)) -> CallResult {
        b += 1;
        tokio::task::yield_now().await;
        Ok(a + b)
    }

    #[timeout(secs = 60)]
    pub(super) async fn unnamed(_: u8, _: &str, kept: &u32) -> CallResult {
        Ok(*kept)
    }

    #[timeout(secs = 60)]
    pub(super) async fn fields(Request { id, .. }: &mut Request) -> CallResult {
        tokio::task::yield_now().await;
        *id += 1;
        Ok(*id)
    }

    #[timeout(secs = 60)]
    pub(super) async fn deep([first, .., Request { id: last, .. }]: &[Request; 3]) -> CallResult {
        Ok(first.id + last)
    }

    #[timeout(secs = 60)]
    pub(super) async fn changed(mut text: String, r#type: u32) -> CallResult {
        text.push('!');
        Ok(r#type + u32::try_from(text.len()).unwrap())
    }

    #[timeout(secs = 60)]
    #[allow(clippy::too_many_arguments)]
    pub(super) async fn named(
        result: u32,
        f: u32,
        token: u32,
        deadline: u32,
        limit: u32,
        rt: u32,
        name: u32,
        this: u32,
        __timeout_inner: u32,
    ) -> CallResult {
        assert!(!cancel_token.is_cancelled());
        Ok(result + f + token + deadline + limit + rt + name + this + __timeout_inner)
    }

    #[timeout(secs = 60)]
    #[allow(clippy::too_many_arguments, clippy::used_underscore_binding)]
    pub(super) async fn named_as_within(
        ask: u32,
        op: u32,
        answer: u32,
        __options: u32,
        __token: u32,
        __value: u32,
        __fallback: u32,
        __form: u32,
        __timeout_p: u32,
    ) -> CallResult {
        assert!(!cancel_token.is_cancelled());
        Ok(ask + op + answer + __options + __token + __value + __fallback + __form + __timeout_p)
    }

    #[timeout(secs = 60)]
    pub(super) async fn r#match(r#fn: u32) -> CallResult {
        Ok(r#fn)
    }

    #[timeout(secs = 60)]
    pub(super) async fn recursive(depth: u32) -> CallResult {
        match depth {
            0 => Ok(0),
            _ => Ok(Box::pin(recursive(depth - 1)).await? + 1),
        }
    }
}

fn three() -> [Request; 3] {
    [request(1), request(2), request(4)]
}

/// A pattern used to be taken for an expression when it was passed on.
#[test]
fn patterns_bind_as_in_the_plain_function() {
    assert_eq!(on_worker::tuple((1, 2)).unwrap(), 4);
    assert_eq!(on_worker::unnamed(1, String::new(), 7).unwrap(), 7);
    assert_eq!(on_worker::fields(request(7)).unwrap(), 7);
    assert_eq!(on_worker::deep(three()).unwrap(), 5);
    assert_eq!(on_worker::changed("ab".to_owned(), 4).unwrap(), 7);

    assert_eq!(block_on(in_place::tuple(&(1, 2))).unwrap(), 4);
    assert_eq!(block_on(in_place::unnamed(1, "", &7)).unwrap(), 7);
    let mut changed = request(7);
    assert_eq!(block_on(in_place::fields(&mut changed)).unwrap(), 8);
    assert_eq!(changed.id, 8);
    assert_eq!(block_on(in_place::deep(&three())).unwrap(), 5);
    assert_eq!(block_on(in_place::changed("ab".to_owned(), 4)).unwrap(), 7);
}

/// Generated names must not collide with the names of the user.
#[test]
fn an_argument_may_have_any_name() {
    let sum = (1..=9).sum::<u32>();
    assert_eq!(on_worker::named(1, 2, 3, 4, 5, 6, 7, 8, 9).unwrap(), sum);
    let within = on_worker::named_as_within(1, 2, 3, 4, 5, 6, 7, 8, 9);
    assert_eq!(within.unwrap(), sum);

    let named = in_place::named(1, 2, 3, 4, 5, 6, 7, 8, 9);
    assert_eq!(block_on(named).unwrap(), sum);
    let within = in_place::named_as_within(1, 2, 3, 4, 5, 6, 7, 8, 9);
    assert_eq!(block_on(within).unwrap(), sum);
}

/// A generated name was glued from a raw identifier, which is no identifier.
#[test]
fn functions_may_have_raw_names() {
    let (sync, polled) = (
        record(concat!(module_path!(), "::on_worker::match")),
        record(concat!(module_path!(), "::in_place::match")),
    );
    assert_eq!(on_worker::r#match(7).unwrap(), 7);
    assert_eq!(block_on(in_place::r#match(7)).unwrap(), 7);
    assert_eq!(sync.events().len(), 1, "the name is `…::match`");
    assert_eq!(polled.events().len(), 1, "the name is `…::match`");
    let given = record("argument_shapes::loop");
    assert_eq!(on_worker::r#loop().unwrap(), 1);
    assert_eq!(given.events().len(), 1);
}

/// Inside the body, the function's name must refer to the annotated function.
#[test]
fn a_function_may_call_itself() {
    assert_eq!(on_worker::recursive(10).unwrap(), 10);
    assert_eq!(block_on(in_place::recursive(10)).unwrap(), 10);
}

/// Functions that take a token as an argument.
mod with_token {
    use super::*;

    #[timeout(name = "argument_shapes::owned", ms = 20)]
    #[allow(clippy::needless_pass_by_value)] // The owned argument is under test.
    pub(super) fn owned(cancel_token: CancelToken) -> CallResult {
        until_cancelled(&cancel_token)
    }

    #[timeout(name = "argument_shapes::borrowed", ms = 20, run = "inline")]
    pub(super) fn borrowed(cancel_token: &CancelToken) -> CallResult {
        until_cancelled(cancel_token)
    }

    #[timeout(name = "argument_shapes::renamed", ms = 20, token = stop)]
    pub(super) async fn renamed(stop: &CancelToken, cancel_token: u32) -> CallResult {
        stop.cancelled().await;
        stop.check().map(|()| cancel_token)
    }
}

/// The token in an argument must stop the call, and the limit must not cancel that token.
#[test]
fn a_token_in_an_argument_stops_the_call() {
    let calls: [fn(&CancelToken) -> CallResult; 3] = [
        |token| with_token::owned(token.clone()),
        with_token::borrowed,
        |token| block_on(with_token::renamed(token, 7)),
    ];
    for call in calls {
        let token = CancelToken::new();
        let error = call(&token).unwrap_err();
        assert!(error.is_timed_out(), "{error}");
        assert!(error.elapsed() >= Duration::from_millis(20));
        assert!(
            !token.is_cancelled(),
            "the limit cancels only the token of its call"
        );
        token.cancel();
        let error = call(&token).unwrap_err();
        assert!(
            error.is_cancelled() && error.status() == CallStatus::NotStarted,
            "{error}"
        );
    }
}
