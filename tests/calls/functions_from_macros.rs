//! Functions from a `macro_rules!` macro with fragments of every kind in every place.

use crate::support;
use std::future::Future;

use support::{block_on, until_cancelled};
use timeout_runtime::{CancelToken, TimeoutError, timeout};

type CallResult = Result<u32, TimeoutError>;

/// The token must be found in bodies with and without the hygiene of the macro.
mod the_token {
    use super::*;

    macro_rules! body_from_outside {
        ($name:ident, $body:block) => {
            #[timeout(ms = crate::support::short())]
            pub(super) fn $name() -> CallResult $body
        };
    }

    body_from_outside!(outside, {
        assert!(!cancel_token.is_cancelled());
        until_cancelled(&cancel_token)
    });

    macro_rules! body_from_inside {
        ($name:ident) => {
            #[timeout(ms = crate::support::short())]
            pub(super) fn $name() -> CallResult {
                assert!(!cancel_token.is_cancelled());
                until_cancelled(&cancel_token)
            }
        };
    }

    body_from_inside!(inside);

    macro_rules! body_from_both {
        ($name:ident, $($check:tt)*) => {
            #[timeout(ms = crate::support::short())]
            pub(super) async fn $name() -> CallResult {
                $($check)*
                cancel_token.cancelled().await;
                until_cancelled(&cancel_token)
            }
        };
    }

    body_from_both!(both, assert!(!cancel_token.is_cancelled(), "{cancel_token:?}"););

    macro_rules! under_another_name {
        ($name:ident, $token:ident, $body:expr) => {
            #[timeout(ms = crate::support::short(), token = $token)]
            pub(super) fn $name() -> CallResult {
                $body
            }
        };
    }

    under_another_name!(renamed, stop, until_cancelled(&stop));

    macro_rules! with_a_parameter {
        ($name:ident, $token:ident: $type:ty) => {
            #[timeout(ms = crate::support::short(), token = $token)]
            pub(super) fn $name($token: $type) -> CallResult {
                until_cancelled(&$token)
            }
        };
    }

    with_a_parameter!(owned, cancel_token: CancelToken);
    with_a_parameter!(borrowed, stop: &CancelToken);

    macro_rules! parameter_from_inside {
        ($name:ident) => {
            #[timeout(ms = crate::support::short())]
            pub(super) fn $name(cancel_token: CancelToken) -> CallResult {
                until_cancelled(&cancel_token)
            }
        };
    }

    parameter_from_inside!(hidden);
}

#[test]
fn the_token_is_bound_in_bodies_from_macros() {
    let token = CancelToken::new();
    for outcome in [
        the_token::outside(),
        the_token::inside(),
        block_on(the_token::both()),
        the_token::renamed(),
        the_token::owned(token.clone()),
        the_token::borrowed(&token),
        the_token::hidden(token.clone()),
    ] {
        assert!(outcome.unwrap_err().is_timed_out());
    }
    assert!(!token.is_cancelled());
}

/// A function that is assembled from fragments.
mod pieces {
    use super::*;

    macro_rules! every_kind {
        (
            $(#[$attribute:meta])*
            $vis:vis fn $name:ident<$life:lifetime, $generic:ident: $bound:path>(
                $receiver:ident: $receiver_type:ty,
                $pattern:pat => $pattern_type:ty,
                $one:pat_param => $one_type:ty,
                $($rest:ident: $rest_type:ty),*
            ) -> $result:ty
            where { $($condition:tt)* }
            { $statement:stmt; $item:item $value:expr, $literal:literal, $tail:block }
        ) => {
            $(#[$attribute])*
            #[timeout(name = concat!("pieces::", stringify!($name)), ms = $literal, run = "inline")]
            $vis fn $name<$life, $generic: $bound>(
                $receiver: $receiver_type,
                $pattern: $pattern_type,
                $one: $one_type,
                $($rest: $rest_type),*
            ) -> $result
            where
                $($condition)*
            {
                $statement
                $item
                let more: u32 = $value;
                let end: $result = $tail;
                end.map(|end| end + more + $literal)
            }
        };
    }

    every_kind! {
        /// Adds all fragments up.
        #[must_use = "it is the sum"]
        #[allow(clippy::many_single_char_names)] // One letter for each kind of fragment.
        pub(super) fn sum<'a, T: Into>(
            text: &'a str,
            (a, mut b) => (u32, u32),
            [c, ..] => [u32; 2],
            d: T,
            e: [u32; 2]
        ) -> CallResult
        where { u32: From<T>, [T; 2]: Copy + 'a }
        {
            b += 1;
            const ONE: u32 = 1;
            e.iter().sum(), 60_000, {
                cancel_token.check()?;
                Ok(a + b + c + u32::from(d) + ONE + u32::try_from(text.len()).unwrap())
            }
        }
    }

    pub(super) trait Into: std::convert::Into<u32> {}
    impl Into for u8 {}
}

#[test]
fn a_function_may_be_assembled_from_fragments() {
    let sum = pieces::sum("text", (1, 2), [8, 0], 16_u8, [32, 64]).unwrap();
    assert_eq!(sum, 1 + 3 + 8 + 16 + 1 + 4 + 96 + 60_000);
}

/// A whole item as one fragment, and methods of a generated `impl`.
mod wholes {
    use super::*;

    macro_rules! whole {
        ($item:item) => {
            #[timeout(ms = 60_000)]
            $item
        };
    }

    whole! {
        pub(super) fn item(rows: Vec<u32>) -> CallResult {
            cancel_token.check()?;
            Ok(rows.iter().sum())
        }
    }

    whole! {
        pub(super) fn future(rows: Vec<u32>) -> impl Future<Output = CallResult> + Send {
            async move {
                cancel_token.check()?;
                Ok(rows.iter().sum())
            }
        }
    }

    #[derive(Clone)]
    pub(super) struct Table(pub(super) Vec<u32>);

    macro_rules! methods {
        ($type:ty, $self:ident, $($vis:vis $name:ident($arg:ident: $arg_type:ty) $body:block)*) => {
            impl $type {$(
                #[timeout(ms = 60_000)]
                $vis fn $name($self, $arg: $arg_type) -> CallResult $body
            )*}

            impl $type {
                #[timeout(ms = 60_000)]
                pub(super) async fn written_inside(&mut self, row: u32) -> CallResult {
                    self.0.push(row);
                    cancel_token.check()?;
                    Ok(self.0.iter().sum())
                }
            }
        };
    }

    methods! {
        Table, self,
        pub(super) by_value(factor: u32) {
            cancel_token.check()?;
            self.private(factor)
        }
        private(factor: u32) {
            Ok(self.0.iter().sum::<u32>() * factor)
        }
    }
}

#[test]
fn a_whole_item_or_method_may_be_one_fragment() {
    assert_eq!(wholes::item(vec![3, 4]).unwrap(), 7);
    assert_eq!(block_on(wholes::future(vec![3, 4])).unwrap(), 7);
    let mut table = wholes::Table(vec![3, 4]);
    assert_eq!(table.clone().by_value(2).unwrap(), 14);
    assert_eq!(block_on(table.written_inside(5)).unwrap(), 12);
}

/// Options that contain fragments.
mod options {
    use super::*;

    macro_rules! option {
        ($name:ident($limit:ident), $($option:ident = $value:expr),*) => {
            #[timeout($($option = $value),*)]
            pub(super) fn $name($limit: u64) -> u64 {
                $limit
            }
        };
    }

    option!(
        put_in(limit),
        name = "options::put_in",
        ms = limit * 1000,
        run = "inline",
        fallback = |_| 0
    );

    macro_rules! nested {
        ($($value:tt)*) => { option!(put_in_twice(limit), limit = $($value)*, cancel = false, fallback = |_| 0); };
    }

    nested!("1m 30s");
}

#[test]
fn an_option_may_be_a_fragment() {
    assert_eq!(options::put_in(60), 60);
    assert_eq!(options::put_in(0), 0);
    assert_eq!(options::put_in_twice(60), 60);
}

/// Option values that are composed of fragments.
mod values {
    use std::time::{Duration, Instant};

    use super::*;

    /// Returns the limit of a call that does not start.
    pub(super) fn limit(error: &TimeoutError) -> Duration {
        error.limit().expect("the call has a limit")
    }

    pub(super) fn cancelled() -> CancelToken {
        let token = CancelToken::new();
        token.cancel();
        token
    }

    pub(super) struct Limits {
        pub(super) short: Duration,
        pub(super) make: fn(u64) -> Duration,
    }

    /// Each option with an operator beside the fragment.
    macro_rules! beside_operators {
        ($ms:expr, $time:expr, $negative:literal, $path:path, $type:ty, $block:block, $words:tt, $later:expr) => {
            #[timeout(ms = $ms * 2, upstream = cancelled(), run = "inline", fallback = |error| limit(&error))]
            pub(super) fn ms() -> Duration { Duration::MAX }

            #[timeout(secs = 2 * $ms, upstream = cancelled(), run = "inline", fallback = |error| limit(&error))]
            pub(super) fn secs() -> Duration { Duration::MAX }

            #[timeout(limit = $time * 2, upstream = cancelled(), run = "inline", fallback = |error| limit(&error))]
            pub(super) fn time() -> Duration { Duration::MAX }

            #[timeout(ms = ($negative.pow(2)) as u64, upstream = cancelled(), fallback = |error| limit(&error))]
            pub(super) fn negative() -> Duration { Duration::MAX }

            #[timeout(limit = $path(7), upstream = cancelled(), fallback = |error| limit(&error))]
            pub(super) fn path() -> Duration { Duration::MAX }

            #[timeout(ms = <$type>::from([1, 2, 3]).len() as u64, upstream = cancelled(), fallback = |error| limit(&error))]
            pub(super) fn ty() -> Duration { Duration::MAX }

            #[timeout(ms = $type::from([1, 2, 3]).len() as u64, upstream = cancelled(), fallback = |error| limit(&error))]
            pub(super) fn ty_alone() -> Duration { Duration::MAX }

            #[timeout(ms = $block * 2, upstream = cancelled(), fallback = |error| limit(&error))]
            pub(super) fn block() -> Duration { Duration::MAX }

            #[timeout(ms = 2 * $words, upstream = cancelled(), fallback = |error| limit(&error))]
            pub(super) fn words() -> Duration { Duration::MAX }

            #[timeout(ms = u64::pow($ms * 2, 2), upstream = cancelled(), fallback = |error| limit(&error))]
            pub(super) fn inside_a_call() -> Duration { Duration::MAX }

            #[timeout(secs = 60, upstream = cancelled(), fallback = |_| $time * 2)]
            pub(super) fn inside_a_closure() -> Duration { Duration::MAX }

            // If the fragment is split, the subtraction overflows.
            #[timeout(secs = 60, grace = $later * 2, max_abandoned = $ms as usize * 2)]
            pub(super) fn others() -> CallResult { Ok(42) }

            #[timeout(deadline = Instant::now() + $later * 2, fallback = |_| 0)]
            pub(super) fn deadline() -> u32 { 42 }
        };
    }

    beside_operators!(
        1 + 2,
        Duration::from_millis(1) + Duration::from_millis(2),
        -3_i32,
        Duration::from_millis,
        Vec<u8>,
        { 1 + 2 },
        (1 + 2),
        Duration::from_secs(60) - Duration::from_secs(50)
    );

    /// Each option with only the fragment.
    macro_rules! alone {
        (
            $limits:ident, $stop:ident, $field:expr, $call:expr, $first:expr, $list:expr, $place:literal, $yes:literal,
            $convert:expr, $late:path
        ) => {
            #[timeout(limit = $field(9), upstream = $first, run = $place, inherit = $yes, cancel = $yes, fallback = $convert)]
            pub(super) fn field($limits: &Limits, $stop: &CancelToken) -> Duration { $field(0) }

            #[timeout(limit = $call, upstream = $list, run = $place, fallback = $convert, on_late = $late)]
            pub(super) fn call($limits: &Limits, $stop: &CancelToken) -> Duration { Duration::MAX }

            #[timeout(limit = $call, upstream = [$first, $first], run = $place, fallback = $convert)]
            pub(super) fn list($limits: &Limits, $stop: &CancelToken) -> Duration { Duration::MAX }
        };
    }

    alone!(
        limits,
        stop,
        limits.make,
        limits.short.max(Duration::ZERO) + Duration::ZERO,
        if stop.is_cancelled() {
            stop.clone()
        } else {
            CancelToken::new()
        },
        [stop, Some(cancelled())],
        "inline",
        true,
        |error| limit(&error),
        drop
    );

    /// Fragments that are not expressions.
    macro_rules! other_kinds {
        ($life:lifetime, $any:pat, $error:pat, $statement:stmt, $item:item, $shown:expr, $longer:expr, $attribute:meta) => {
            #[timeout(ms = $life: loop { break $life 5 }, upstream = cancelled(), fallback = |$error| { $statement; $shown })]
            #[allow(redundant_semicolons)] // The plain function has them too.
            pub(super) fn label() -> Duration { Duration::MAX }

            #[timeout(secs = 5, upstream = cancelled(), fallback = |$any| { $item $longer })]
            pub(super) fn pattern() -> Duration { Duration::MAX }

            #[timeout(secs = 5, upstream = cancelled(), fallback = |error| if let $any = 5 { limit(&error) } else { Duration::MAX })]
            #[allow(irrefutable_let_patterns)]
            pub(super) fn condition() -> Duration { Duration::MAX }

            #[timeout(ms = { #[$attribute] let one = 1; 5 }, upstream = cancelled(), fallback = longest)]
            pub(super) fn attribute() -> Duration { Duration::MAX }
        };
    }

    other_kinds!(
        'outer,
        _,
        error,
        let more = Duration::from_millis(1),
        const LONGER: Duration = Duration::from_millis(6);,
        limit(&error) + more,
        LONGER,
        allow(unused_variables)
    );

    macro_rules! whole_options {
        ($($option:meta),*) => {
            #[timeout($($option),*)]
            pub(super) fn whole_options() -> Duration { Duration::MAX }
        };
    }

    whole_options!(
        secs = 4,
        run = "inline",
        upstream = cancelled(),
        fallback = longest
    );

    #[allow(clippy::needless_pass_by_value)] // As `fallback` calls it.
    pub(super) fn longest(error: TimeoutError) -> Duration {
        limit(&error)
    }
}

/// `$limit * 2` with `a + b` for `$limit` used to be `a + b * 2`.
// Fails if the macro emits values as it has parsed them.
#[test]
fn a_fragment_in_an_option_keeps_its_precedence() {
    use std::time::Duration;

    let millis = Duration::from_millis;
    assert_eq!(values::ms(), millis(6));
    assert_eq!(values::secs(), millis(6000));
    assert_eq!(values::time(), millis(6));
    assert_eq!(values::negative(), millis(9));
    assert_eq!(values::path(), millis(7));
    assert_eq!(values::ty(), millis(3));
    assert_eq!(values::ty_alone(), millis(3));
    assert_eq!(values::block(), millis(6));
    assert_eq!(values::words(), millis(6));
    assert_eq!(values::inside_a_call(), millis(36));
    assert_eq!(values::inside_a_closure(), millis(6));
    assert_eq!(values::others().unwrap(), 42);
    assert_eq!(values::deadline(), 42);
    assert_eq!(values::whole_options(), millis(4000));
    assert_eq!(values::label(), millis(6));
    assert_eq!(values::pattern(), millis(6));
    assert_eq!(values::condition(), millis(5000));
    assert_eq!(values::attribute(), millis(5));

    let limits = values::Limits {
        short: millis(8),
        make: millis,
    };
    let stop = values::cancelled();
    assert_eq!(values::field(&limits, &stop), millis(9));
    assert_eq!(values::call(&limits, &CancelToken::new()), millis(8));
    assert_eq!(values::list(&limits, &stop), millis(8));
}

/// Signatures and bodies with fragments beside operators.
mod operands {
    use std::fmt::Debug;

    use super::*;

    macro_rules! operands {
        ($number:expr, $bounds:ty) => {
            #[timeout(secs = 60, run = "inline")]
            pub(super) fn signature(
                rows: [u8; $number * 2],
                shown: &$bounds,
            ) -> Result<[u8; $number * 2], TimeoutError> {
                assert_eq!(format!("{shown:?}"), "8");
                Ok(rows)
            }

            #[timeout(secs = 60)]
            pub(super) fn body() -> Result<usize, TimeoutError> {
                #![allow(clippy::identity_op)]
                Ok::<usize, TimeoutError>($number * 2)?;
                let rows = [0_u8; $number * 2];
                Ok(rows.len())
            }

            #[timeout(secs = 60, fallback = |_| 0)]
            pub(super) fn tail() -> usize {
                #![allow(clippy::identity_op)]
                $number * 2
            }
        };
    }

    operands!(1 + 2, dyn Debug + Send);
}

/// An array of `$number * 2` elements used to have five elements and not six.
/// A body with attributes had the same bug.
// Fails if the macro emits signatures or bodies as it has parsed them.
#[test]
fn a_fragment_in_a_signature_or_a_body_keeps_its_precedence() {
    assert_eq!(operands::signature([1; 6], &8).unwrap(), [1; 6]);
    assert_eq!(operands::body().unwrap(), 6);
    assert_eq!(operands::tail(), 6);
}
