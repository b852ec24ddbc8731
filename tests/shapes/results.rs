//! Functions by return type, and by the attributes and qualifiers before `fn`.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use timeout_runtime::{Returned, FromTimeout};

use super::*;

#[derive(Debug)]
enum Reply {
    Found(Noted),
    Late,
}

impl FromTimeout for Reply {
    fn from_timeout(_: TimeoutError) -> Self {
        Self::Late
    }

    fn returned(&self) -> Returned<'_> {
        match self {
            Self::Found(_) => Returned::Value,
            Self::Late => Returned::Error(self),
        }
    }
}

impl Reply {
    fn found(self) -> Option<Noted> {
        match self {
            Self::Found(noted) => Some(noted),
            Self::Late => None,
        }
    }
}

/// Receives the number of a function that returns no value.
#[derive(Clone, Default)]
struct Output(Arc<AtomicU32>);

impl Output {
    fn set(&self, number: u32) {
        self.0.store(number, Ordering::SeqCst);
    }

    fn number(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

fn missed(_: TimeoutError) -> u32 {
    MISSED
}

shapes! { ($on:meta, $run:literal)
    an_option [worker inline] |hangs, log| found(hangs, log.note("a"), vec![log.note("b")]) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn found(hangs: Hangs, a: Noted, all: Vec<Noted>) -> Option<Noted> {
            pass(hangs).ok()?;
            all.into_iter().find(|noted| noted.value() == a.value())
        }
    }

    an_option_async [async_inline async_task async_worker] |hangs, log| found(
        hangs, log.note("a"), vec![log.note("b")],
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn found(hangs: Hangs, a: Noted, all: Vec<Noted>) -> Option<Noted> {
            pass_async(hangs).await.ok()?;
            all.into_iter().find(|noted| noted.value() == a.value())
        }
    }

    an_alias [worker inline] |hangs, log| aliased(
        hangs, log.note("a"),
    ).map(|(a, more)| a.value() + more.map_or(0, |b| b.value())) => {
        type Found<T, E = io::Error> = Result<(Noted, Option<T>), E>;

        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn aliased(hangs: Hangs, a: Noted) -> Found<Noted> {
            pass(hangs)?;
            let more = a.1.note("more");
            Ok((a, Some(more)))
        }
    }

    nothing_but_an_ending [worker inline] |hangs, log| outcome(hangs, log.note("a")).map(|()| 1) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn outcome(hangs: Hangs, _a: Noted) -> io::Result<()> {
            pass(hangs)?;
            Ok(())
        }
    }

    a_generic_error [worker inline] |hangs, log| generic::<io::Error>(hangs, log.note("a")) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn generic<E>(hangs: Hangs, a: Noted) -> Result<Noted, E>
        where
            E: From<TimeoutError> + std::fmt::Debug + Send + 'static,
        {
            pass(hangs)?;
            Ok(a)
        }
    }

    a_type_of_its_own [worker inline] |hangs, log| replies(hangs, log.note("a"), log.note("b")).found() => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn replies(hangs: Hangs, a: Noted, _b: Noted) -> Reply {
            let Ok(()) = pass(hangs) else { return Reply::Late };
            Reply::Found(a)
        }
    }

    a_type_of_its_own_async [async_inline async_task async_worker] |hangs, log| async {
        replies(hangs, log.note("a"), log.note("b")).await.found()
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn replies(hangs: Hangs, a: Noted, _b: Noted) -> Reply {
            let Ok(()) = pass_async(hangs).await else { return Reply::Late };
            Reply::Found(a)
        }
    }

    fallen_back [worker inline] |hangs, log| counted(hangs, log.note("a"), log.note("b")) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run, fallback = missed))]
        fn counted(hangs: Hangs, a: Noted, _b: Noted) -> u32 {
            let Ok(()) = pass(hangs) else { return MISSED };
            a.value()
        }
    }

    fallen_back_async [async_inline async_task async_worker] |hangs, log| counted(
        hangs, log.note("a"), log.note("b"),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run, fallback = |_| MISSED))]
        async fn counted(hangs: Hangs, a: Noted, _b: Noted) -> u32 {
            let Ok(()) = pass_async(hangs).await else { return MISSED };
            a.value()
        }
    }

    fallen_back_to_nothing [worker inline] |hangs, log| {
        let output = Output::default();
        nothing(hangs, log.note("a"), output.clone());
        output.number()
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run, fallback = { let output = output.clone(); move |_| output.set(MISSED) }))]
        fn nothing(hangs: Hangs, a: Noted, output: Output) {
            let Ok(()) = pass(hangs) else { return output.set(MISSED) };
            output.set(a.value());
        }
    }

    fallen_back_to_nothing_async [async_inline] |hangs, log| async {
        let output = Output::default();
        nothing(hangs, log.note("a"), &output).await;
        output.number()
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run, fallback = |_| output.set(MISSED)))]
        async fn nothing(hangs: Hangs, a: Noted, output: &Output) -> () {
            let Ok(()) = pass_async(hangs).await else { return output.set(MISSED) };
            output.set(a.value());
        }
    }

    fallen_back_with_an_error [worker inline] |hangs, log| failed(
        hangs, log.note("a"), 7,
    ).map(|(a, more)| a.value() + more[1]) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run, fallback = |error| Err((id, error.to_string()))))]
        fn failed(hangs: Hangs, a: Noted, id: u32) -> Result<(Noted, [u32; 2]), (u32, String)> {
            pass(hangs).map_err(|error| (id, error.to_string()))?;
            Ok((a, [id; 2]))
        }
    }

    fallen_back_to_a_borrow [inline] |hangs, log| {
        let (a, other) = (log.note("a"), log.note("other"));
        let found = borrowed(hangs, &a, &other);
        (found.value() == a.value()).then_some(found.value())
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run, fallback = |_| other))]
        fn borrowed<'a>(hangs: Hangs, a: &'a Noted, other: &'a Noted) -> &'a Noted {
            let Ok(()) = pass(hangs) else { return other };
            a
        }
    }

    a_borrow [inline] |hangs, log| {
        let mut all = [log.note("a"), log.note("bb")];
        changed(hangs, &mut all, log.note("c")).map(|first| {
            first.0 = "changed";
            first.value()
        })
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn changed(hangs: Hangs, all: &mut [Noted], _c: Noted) -> Option<&mut Noted> {
            pass(hangs).ok()?;
            all.first_mut()
        }
    }

    a_borrow_async [async_inline] |hangs, log| async {
        let all = [log.note("a"), log.note("bb")];
        let shown = shown(hangs, &all, log.note("c")).await?.to_string();
        Some(shown.parse::<u32>().unwrap())
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn shown(hangs: Hangs, all: &[Noted], _c: Noted) -> Option<Box<dyn std::fmt::Display + '_>> {
            pass_async(hangs).await.ok()?;
            if all.is_empty() {
                return Some(Box::new("nothing"));
            }
            Some(Box::new(all.len()))
        }
    }

    coerced [worker inline] |hangs, log| shown(hangs, log.note("a")).map(|made| made().value()) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn shown(
            hangs: Hangs, a: Noted,
        ) -> Result<Box<dyn FnOnce() -> Noted + Send>, Box<dyn std::error::Error + Send + Sync>> {
            pass(hangs)?;
            if a.value() == 7 {
                return Ok(Box::new(|| unreachable!()));
            }
            Ok(Box::new(|| a))
        }
    }

    limited_twice [worker inline] |hangs, log| twice(hangs, log.note("a"), (log.note("b"), log.note("c"))) => {
        #[cfg_attr($on, timeout(secs = 600, run = "inline"))]
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn twice(hangs: Hangs, a: Noted, (b, _): (Noted, Noted)) -> CallResult {
            pass(hangs)?;
            Ok(a.value() + b.value())
        }
    }

    limited_twice_async [async_inline async_task async_worker] |hangs, log| twice(
        hangs, log.note("a"), log.note("b"),
    ) => {
        #[cfg_attr($on, timeout(secs = 600))]
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn twice(hangs: Hangs, a: Noted, _: Noted) -> CallResult {
            pass_async(hangs).await?;
            Ok(a.value())
        }
    }

    under_attributes [worker inline] |hangs, log| inner::attributed(hangs, log.note("a"), log.note("b")) => {
        mod inner {
            use super::*;

            /// Documented.
            ///
            /// At length.
            #[must_use = "it is a result"]
            #[inline]
            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            #[track_caller]
            #[doc(alias = "decorated")]
            #[expect(unused_variables, reason = "the unused arguments are under test")]
            pub(in super::super) fn attributed(hangs: Hangs, a: Noted, b: Noted) -> Option<u32> {
                pass(hangs).ok()?;
                Some(1)
            }
        }
    }

    under_attributes_async [async_inline async_task async_worker] |hangs, log| inner::attributed(
        hangs, log.note("a"), log.note("b"),
    ) => {
        mod inner {
            use super::*;

            #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
            #[doc = "Documented."]
            #[must_use]
            #[cold]
            #[allow(unused_variables, reason = "the unused arguments are under test")]
            pub(crate) async fn attributed(hangs: Hangs, a: Noted, b: Noted) -> Option<u32> {
                pass_async(hangs).await.ok()?;
                Some(1)
            }
        }
    }
}
