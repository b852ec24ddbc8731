//! Functions that macros assemble from fragments.

use super::*;

macro_rules! function {
    ($on:meta, $run:literal, $name:ident($hangs:ident, $arg:ident: $type:ty) -> $result:ty, $body:block) => {
        #[cfg_attr($on, timeout(ms = limit($hangs), run = $run))]
        fn $name($hangs: Hangs, $arg: $type) -> $result $body
    };
}

macro_rules! async_function {
    ($on:meta, $run:literal, $(#[$attribute:meta])* $vis:vis $name:ident, $pattern:pat => $type:ty, $value:expr) => {
        $(#[$attribute])*
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        $vis async fn $name(hangs: Hangs, $pattern: $type) -> CallResult {
            pass_async(hangs).await?;
            let value = $value;
            Ok(value)
        }
    };
}

macro_rules! lifetimes {
    ($on:meta, $run:literal, <$life:lifetime, $generic:ident: $bound:path> $arg:ident, $statement:stmt; $literal:literal) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn borrowed<$life, $generic: $bound>(
            hangs: Hangs, $arg: &$life Noted, by: $generic,
        ) -> Result<&$life Noted, TimeoutError> {
            $statement
            pass(hangs)?;
            assert_eq!(by.into(), $literal);
            Ok($arg)
        }
    };
}

macro_rules! methods {
    ($on:meta, $run:literal, $type:ty, $self:ident, $($name:ident($($arg:tt)*) $body:block)*) => {
        impl $type {$(
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn $name($self, hangs: Hangs, $($arg)*) -> CallResult {
                pass(hangs)?;
                $body
            }
        )*}
    };
}

macro_rules! whole {
    ($on:meta, $run:literal, $limit:expr, $item:item) => {
        #[cfg_attr($on, timeout(ms = $limit, run = $run))]
        $item
    };
}

shapes! { ($on:meta, $run:literal)
    types_and_blocks [worker inline] |hangs, log| put(hangs, (log.note("a"), log.note("b"))) => {
        function!($on, $run, put(hangs, pair: (Noted, Noted)) -> CallResult, {
            let first = pair.0;
            pass(hangs)?;
            Ok(first.value() + pair.1.value())
        });
    }

    future_types [future] |hangs, log| put(hangs, log.note("a")) => {
        function!($on, $run, put(hangs, a: Noted) -> impl Future<Output = CallResult> + Send, {
            async move {
                pass_async(hangs).await?;
                Ok(a.value())
            }
        });
    }

    patterns_and_expressions [async_inline async_task async_worker] |hangs, log| put(
        hangs, (log.note("a"), log.note("b")),
    ) => {
        async_function! { $on, $run, #[must_use = "it is a result"] pub(super) put, (a, mut b) => (Noted, Noted), { b.0 = "changed"; a.value() + b.value() } }
    }

    bounds_and_statements [inline] |hangs, log| {
        let a = log.note("a");
        borrowed(hangs, &a, 7_u8).number()
    } => {
        lifetimes! { $on, $run, <'a, T: Into<u32>> a, let _local = a.1.note("local"); 7 }
    }

    receivers [worker inline] |hangs, log| {
        let first = Table(log.note("self")).first(hangs, (log.note("a"), log.note("b")));
        first.and_then(|first| Ok(first + Table(log.note("self")).second(hangs)?))
    } => {
        struct Table(Noted);

        methods! { $on, $run, Table, self,
            first((a, _): (Noted, Noted)) { Ok(self.0.value() + a.value()) }
            second() { Ok(self.0.value()) }
        }
    }

    item_fragments [worker inline] |hangs, log| whole(hangs, log.note("a"), log.note("b")) => {
        whole! { $on, $run, limit(hangs),
            /// The whole item is one fragment.
            fn whole(hangs: Hangs, a: Noted, _: Noted) -> CallResult {
                pass(hangs)?;
                Ok(a.value())
            }
        }
    }
}
