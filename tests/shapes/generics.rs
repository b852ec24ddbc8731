//! Functions with type, constant and lifetime parameters, and with opaque types.

use std::borrow::Cow;
use std::marker::PhantomData;

use super::*;

shapes! { ($on:meta, $run:literal)
    types [worker inline] |hangs, log| generic(hangs, log.note("a"), 7_u8, None::<Noted>) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn generic<T: Into<u32> + Send + 'static, U, V: Send + 'static>(hangs: Hangs, one: T, other: U, none: Option<V>) -> CallResult
        where
            U: Into<u32> + Send + 'static,
            Option<V>: IntoIterator,
        {
            pass(hangs)?;
            Ok(one.into() + 10 * other.into() + u32::try_from(none.into_iter().count()).unwrap())
        }
    }

    types_async [async_inline async_task async_worker] |hangs, log| generic(
        hangs, log.note("a"), 7_u8, [log.note("b")],
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn generic<T: Into<u32> + Send + 'static, U, const N: usize>(hangs: Hangs, one: T, other: U, more: [T; N]) -> CallResult
        where
            U: Into<u32> + Send + 'static,
        {
            pass_async(hangs).await?;
            Ok(one.into() + 10 * other.into() + more.into_iter().map(Into::into).sum::<u32>())
        }
    }

    only_named [worker inline] |hangs, log| named::<Vec<u8>, 3>(hangs, log.note("a"), PhantomData) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn named<T: Default + IntoIterator + 'static, const N: u32>(
            hangs: Hangs, a: Noted, _of: PhantomData<fn() -> T>,
        ) -> CallResult {
            pass(hangs)?;
            let none = T::default().into_iter().count();
            Ok(a.value() + N + u32::try_from(none).unwrap())
        }
    }

    constants [worker inline] |hangs, log| {
        let found = array::<_, 2, 'x', true>(hangs, [log.note("a"), log.note("bb")]);
        found.map(|[first, _]| first)
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn array<T: Send + 'static, const N: usize, const C: char, const IS: bool>(
            hangs: Hangs, all: [T; N],
        ) -> Result<[T; { 1 + 1 }], TimeoutError> {
            pass(hangs)?;
            assert_eq!((C, IS), ('x', true));
            all.into_iter().collect::<Vec<_>>().try_into().map_err(|_| unreachable!())
        }
    }

    defaults [worker inline] |hangs, log| Ring { rows: [log.note("a"), log.note("bb")] }.push(hangs, log.note("ccc")) => {
        struct Ring<T = Noted, const N: usize = 2> {
            rows: [T; N],
        }

        impl<T: Into<u32> + Send + 'static, const N: usize> Ring<T, N> {
            const SIZE: u32 = 7;

            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            fn push(mut self, hangs: Hangs, row: T) -> CallResult {
                self.rows[N - 1] = row;
                pass(hangs)?;
                Ok(self.rows.into_iter().map(Into::into).sum::<u32>() + Self::SIZE)
            }
        }
    }

    lifetimes [inline] |hangs, log| {
        let (long, text) = (log.note("long"), "text".to_owned());
        longer(hangs, &long, &log.note("a"), Cow::Borrowed(&text)).number()
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn longer<'a: 'b, 'b>(
            hangs: Hangs, one: &'a Noted, other: &'b Noted, text: Cow<'_, str>,
        ) -> Result<&'b Noted, TimeoutError> {
            pass(hangs)?;
            Ok(if text.len() > 3 { one } else { other })
        }
    }

    lifetimes_async [async_inline] |hangs, log| async {
        let long = log.note("long");
        longer(hangs, &long, &log.note("a"), Cow::Borrowed("text")).await.number()
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn longer<'a, 'b>(
            hangs: Hangs, one: &'a Noted, other: &'b Noted, text: Cow<'_, str>,
        ) -> Result<&'b Noted, TimeoutError>
        where
            'a: 'b,
        {
            pass_async(hangs).await?;
            Ok(if text.len() > 3 { one } else { other })
        }
    }

    elided [inline] |hangs, log| {
        let all = [log.note("a"), log.note("bb")];
        find(hangs, &all).number()
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn find(hangs: Hangs, all: &[Noted]) -> Result<Option<&Noted>, TimeoutError> {
            pass(hangs)?;
            Ok(all.iter().find(|noted| noted.value() == 2))
        }
    }

    static_lifetimes [worker inline] |hangs, log| kept(
        hangs, "text", &[1, 2], Cow::Borrowed("key"), log.note("a"),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn kept(
            hangs: Hangs, text: &'static str, rows: &'static [u32], key: Cow<'static, str>,
            a: impl Into<u32> + Send + 'static,
        ) -> Result<&'static str, TimeoutError> {
            pass(hangs)?;
            assert_eq!((rows.len(), key.len(), a.into()), (2, 3, 1));
            Ok(text)
        }
    }

    higher_ranked [worker inline] |hangs, log| {
        let held = log.note("held");
        ranked(hangs, log.note("a"), |noted| noted.0, move |noted| noted.value() + held.value(), Box::new(|noted| noted))
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn ranked<F>(
            hangs: Hangs, a: Noted, name: F, count: impl for<'n> FnOnce(&'n Noted) -> u32 + Send + 'static,
            same: Box<dyn for<'n> Fn(&'n Noted) -> &'n Noted + Send>,
        ) -> CallResult
        where
            F: for<'n> Fn(&'n Noted) -> &'n str + Send + 'static,
        {
            pass(hangs)?;
            Ok(len(name(&a)) + 10 * count(same(&a)))
        }
    }

    hidden_arguments [worker inline] |hangs, log| {
        let held = log.note("held");
        hidden(hangs, log.note("a"), vec![log.note("b")], move |by| by + held.value())
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn hidden(
            hangs: Hangs, one: impl Into<u32> + Send + 'static,
            all: impl IntoIterator<Item = impl Into<u32>> + Send + 'static,
            mut kept: impl FnMut(u32) -> u32 + Send + 'static,
        ) -> CallResult {
            pass(hangs)?;
            Ok(kept(one.into()) + all.into_iter().map(Into::into).sum::<u32>())
        }
    }

    hidden_async_closure [async_inline] |hangs, log| {
        let held = log.note("held");
        by(hangs, log.note("a"), async move |noted: &Noted| noted.value() + held.value())
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn by(hangs: Hangs, a: Noted, by: impl AsyncFnOnce(&Noted) -> u32) -> CallResult {
            pass_async(hangs).await?;
            Ok(by(&a).await)
        }
    }

    hidden_answer [worker inline] |hangs, log| hidden(
        hangs, log.note("a"), log.note("b"),
    ).map(|pair| pair.0.into() + pair.1()) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn hidden(hangs: Hangs, a: Noted, b: Noted) -> Result<(impl Into<u32>, impl Fn() -> u32), TimeoutError> {
            pass(hangs)?;
            Ok((a, move || b.value()))
        }
    }

    hidden_answer_async [async_inline async_task async_worker] |hangs, log| async {
        Some(hidden(hangs, vec![log.note("a"), log.note("b")]).await?.map(Into::<u32>::into).sum::<u32>())
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn hidden(hangs: Hangs, all: Vec<Noted>) -> Option<impl Iterator<Item = impl Into<u32> + Copy>> {
            pass_async(hangs).await.ok()?;
            Some(all.into_iter().map(u32::from))
        }
    }

    unsized_types [inline] |hangs, log| {
        let held = log.note("held");
        unsized_by(hangs, "text", &move |by: u32| held.value() + by)
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn unsized_by<T: AsRef<str> + ?Sized, F>(hangs: Hangs, text: &T, by: &F) -> CallResult
        where
            F: Fn(u32) -> u32 + ?Sized,
        {
            pass(hangs)?;
            Ok(by(len(text.as_ref())))
        }
    }
}
