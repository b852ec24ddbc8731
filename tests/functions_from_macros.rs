//! Functions that come out of a `macro_rules!`, with pieces of every kind put in.

mod support;

use std::future::Future;

use support::{block_on, until_fired};
use timeout_runtime::{CancelToken, TimeoutError, timeout};

type Answer = Result<u32, TimeoutError>;

/// Guards against a token that has the name of the body's and not its hygiene.
mod the_token {
    use super::*;

    macro_rules! body_from_outside {
        ($name:ident, $body:block) => {
            #[timeout(ms = 30)]
            pub(super) fn $name() -> Answer $body
        };
    }

    body_from_outside!(outside, {
        assert!(!cancel_token.is_cancelled());
        until_fired(&cancel_token)
    });

    macro_rules! body_from_inside {
        ($name:ident) => {
            #[timeout(ms = 30)]
            pub(super) fn $name() -> Answer {
                assert!(!cancel_token.is_cancelled());
                until_fired(&cancel_token)
            }
        };
    }

    body_from_inside!(inside);

    macro_rules! body_from_both {
        ($name:ident, $($check:tt)*) => {
            #[timeout(ms = 30)]
            pub(super) async fn $name() -> Answer {
                $($check)*
                cancel_token.cancelled().await;
                until_fired(&cancel_token)
            }
        };
    }

    body_from_both!(both, assert!(!cancel_token.is_cancelled(), "{cancel_token:?}"););

    macro_rules! under_another_name {
        ($name:ident, $token:ident, $body:expr) => {
            #[timeout(ms = 30, token = $token)]
            pub(super) fn $name() -> Answer {
                $body
            }
        };
    }

    under_another_name!(renamed, stop, until_fired(&stop));

    macro_rules! with_a_parameter {
        ($name:ident, $token:ident: $type:ty) => {
            #[timeout(ms = 30, token = $token)]
            pub(super) fn $name($token: $type) -> Answer {
                until_fired(&$token)
            }
        };
    }

    with_a_parameter!(owned, cancel_token: CancelToken);
    with_a_parameter!(borrowed, stop: &CancelToken);

    macro_rules! parameter_from_inside {
        ($name:ident) => {
            #[timeout(ms = 30)]
            pub(super) fn $name(cancel_token: CancelToken) -> Answer {
                until_fired(&cancel_token)
            }
        };
    }

    parameter_from_inside!(hidden);
}

#[test]
fn the_token_is_there_wherever_the_body_comes_from() {
    let token = CancelToken::new();
    for ending in [
        the_token::outside(),
        the_token::inside(),
        block_on(the_token::both()),
        the_token::renamed(),
        the_token::owned(token.clone()),
        the_token::borrowed(&token),
        the_token::hidden(token.clone()),
    ] {
        assert!(ending.unwrap_err().is_timed_out());
    }
    assert!(!token.is_cancelled());
}

/// A function in pieces.
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
            ) -> $answer:ty
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
            ) -> $answer
            where
                $($condition)*
            {
                $statement
                $item
                let more: u32 = $value;
                let end: $answer = $tail;
                end.map(|end| end + more + $literal)
            }
        };
    }

    every_kind! {
        /// Adds it all up.
        #[must_use = "it is the sum"]
        #[allow(clippy::many_single_char_names)] // Each is of a kind of its own.
        pub(super) fn sum<'a, T: Into>(
            text: &'a str,
            (a, mut b) => (u32, u32),
            [c, ..] => [u32; 2],
            d: T,
            e: [u32; 2]
        ) -> Answer
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
fn a_function_may_be_put_together_from_pieces() {
    let sum = pieces::sum("text", (1, 2), [8, 0], 16_u8, [32, 64]).unwrap();
    assert_eq!(sum, 1 + 3 + 8 + 16 + 1 + 4 + 96 + 60_000);
}

/// A whole item, put in at once, and methods of a generated `impl`.
mod wholes {
    use super::*;

    macro_rules! whole {
        ($item:item) => {
            #[timeout(ms = 60_000)]
            $item
        };
    }

    whole! {
        pub(super) fn item(rows: Vec<u32>) -> Answer {
            cancel_token.check()?;
            Ok(rows.iter().sum())
        }
    }

    whole! {
        pub(super) fn future(rows: Vec<u32>) -> impl Future<Output = Answer> + Send {
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
                $vis fn $name($self, $arg: $arg_type) -> Answer $body
            )*}

            impl $type {
                #[timeout(ms = 60_000)]
                pub(super) async fn written_inside(&mut self, row: u32) -> Answer {
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
fn items_and_methods_may_come_whole() {
    assert_eq!(wholes::item(vec![3, 4]).unwrap(), 7);
    assert_eq!(block_on(wholes::future(vec![3, 4])).unwrap(), 7);
    let mut table = wholes::Table(vec![3, 4]);
    assert_eq!(table.clone().by_value(2).unwrap(), 14);
    assert_eq!(block_on(table.written_inside(5)).unwrap(), 12);
}

/// Options in pieces.
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
fn options_may_be_put_in() {
    assert_eq!(options::put_in(60), 60);
    assert_eq!(options::put_in(0), 0);
    assert_eq!(options::put_in_twice(60), 60);
}
