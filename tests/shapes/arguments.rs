//! Functions by the number, names, attributes and use of their arguments.

use super::*;

/// Input of functions without arguments: whether they hang, and the log of their drops.
type Given = Mutex<Option<(Hangs, Log)>>;

fn look(given: &Given) -> (Hangs, Log) {
    given.lock().unwrap().clone().unwrap()
}

shapes! { ($on:meta, $run:literal)
    none [worker inline] |hangs, log| {
        *GIVEN.lock().unwrap() = Some((hangs, log.clone()));
        none()
    } => {
        static GIVEN: Given = Given::new(None);

        #[cfg_attr($on, timeout(ms = limit(look(&GIVEN).0), run = $run))]
        fn none() -> CallResult {
            let (hangs, log) = look(&GIVEN);
            let local = log.note("local");
            pass(hangs)?;
            Ok(local.value())
        }
    }

    none_async [async_inline async_task async_worker] |hangs, log| {
        *GIVEN.lock().unwrap() = Some((hangs, log.clone()));
        none()
    } => {
        static GIVEN: Given = Given::new(None);

        #[cfg_attr($on, timeout(ms = limit(look(&GIVEN).0), run = $run))]
        async fn none() -> CallResult {
            let (hangs, log) = look(&GIVEN);
            let local = log.note("local");
            pass_async(hangs).await?;
            Ok(local.value())
        }
    }

    by_default [worker] |hangs, log| one(hangs, log.note("a")) => {
        #[cfg_attr($on, timeout(ms = limit(hangs)))]
        fn one(hangs: Hangs, a: Noted) -> CallResult {
            pass(hangs)?;
            Ok(a.value())
        }
    }

    by_default_async [async_inline] |hangs, log| one(hangs, log.note("a")) => {
        #[cfg_attr($on, timeout(ms = limit(hangs)))]
        async fn one(hangs: Hangs, a: Noted) -> CallResult {
            pass_async(hangs).await?;
            Ok(a.value())
        }
    }

    twelve [worker inline] |hangs, log| twelve(
        hangs, log.note("b"), 3, log.note("dd"), "eeee", [5, 6], log.note("ggg"), (7, 8),
        log.note("i"), vec![9], Box::new(10), log.note("last"),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        #[allow(clippy::too_many_arguments, clippy::many_single_char_names, clippy::boxed_local)] // The signature is under test.
        fn twelve(
            hangs: Hangs, b: Noted, c: u32, d: Noted, e: &'static str, f: [u32; 2], g: Noted, h: (u32, u32),
            i: Noted, j: Vec<u32>, k: Box<u32>, l: Noted,
        ) -> CallResult {
            pass(hangs)?;
            let noted = b.value() + 10 * d.value() + 100 * g.value() + 1000 * i.value() + 10_000 * l.value();
            Ok(noted + c + len(e) + f[0] + f[1] + h.0 + h.1 + j[0] + *k)
        }
    }

    twelve_async [async_inline async_task async_worker] |hangs, log| twelve(
        hangs, log.note("b"), 3, log.note("dd"), "eeee", [5, 6], log.note("ggg"), (7, 8),
        log.note("i"), vec![9], Box::new(10), log.note("last"),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        #[allow(clippy::too_many_arguments, clippy::many_single_char_names)] // The signature is under test.
        async fn twelve(
            hangs: Hangs, b: Noted, c: u32, d: Noted, e: &'static str, f: [u32; 2], g: Noted, h: (u32, u32),
            i: Noted, j: Vec<u32>, k: Box<u32>, l: Noted,
        ) -> CallResult {
            pass_async(hangs).await?;
            let noted = b.value() + 10 * d.value() + 100 * g.value() + 1000 * i.value() + 10_000 * l.value();
            Ok(noted + c + len(e) + f[0] + f[1] + h.0 + h.1 + j[0] + *k)
        }
    }

    // Generated names used to hide the user's names, or were hidden by them.
    named_like_generated_names [worker inline] |hangs, log| named(
        hangs, (1, 2), log.note("ask"), 4, 8, 16, 32, 64, 128, 256, 512, 1024,
    ) => {
        #[cfg_attr($on, timeout(ms = self::limit(hangs), run = $run))]
        #[allow(clippy::too_many_arguments)] // The signature is under test.
        fn named(
            hangs: Hangs, (__arg2, __arg1): (u32, u32), __options: Noted, __token: u32, __value: u32, __form: u32,
            __timeout_p: u32,
            limit: u32, result: u32, this: u32, deadline: u32, p: u32,
        ) -> CallResult {
            pass(hangs)?;
            let sum = __arg1 + __arg2 + __token + __value + __form + __timeout_p + limit + result + this + deadline + p;
            Ok(sum + __options.value() * 10_000)
        }
    }

    named_like_generated_names_async [async_inline async_task async_worker] |hangs, log| named(
        hangs, (1, 2), log.note("call"), 4, 8, 16, 32, log.note("op"), 64, 128,
    ) => {
        #[cfg_attr($on, timeout(ms = self::limit(hangs), run = $run))]
        #[allow(clippy::too_many_arguments)] // The signature is under test.
        async fn named(
            hangs: Hangs, (__arg2, __arg1): (u32, u32), __call: Noted, __token: u32, __options: u32, __form: u32,
            __timeout_p: u32,
            __op: Noted, limit: u32, f: u32,
        ) -> CallResult {
            pass_async(hangs).await?;
            let sum = __arg1 + __arg2 + __token + __options + __form + __timeout_p + limit + f;
            Ok(sum + __call.value() * 10_000 + __op.value() * 100_000)
        }
    }

    named_like_generated_names_with_fallback [worker inline] |hangs, log| named(hangs, 1, 2, log.note("answer"), 4) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run, fallback = |_| MISSED))]
        fn named(hangs: Hangs, __fallback: u32, fallback: u32, __value: Noted, __options: u32) -> u32 {
            let Ok(()) = pass(hangs) else { return MISSED };
            __fallback + fallback + __value.value() + __options
        }
    }

    raw_names [worker inline] |hangs, log| r#match(hangs, log.note("type"), log.note("in"), 3_u8) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        #[allow(non_camel_case_types)] // A type parameter is named like a keyword.
        fn r#match<r#where: Into<u32> + Send + 'static>(
            hangs: Hangs, r#type: Noted, mut r#in: Noted, r#fn: r#where,
        ) -> CallResult {
            pass(hangs)?;
            r#in.0 = "changed";
            Ok(r#type.value() + r#fn.into())
        }
    }

    raw_names_async [async_inline async_task async_worker] |hangs, log| r#loop(hangs, log.note("type"), (1, 2)) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn r#loop(r#hangs: Hangs, r#type: Noted, (r#if, r#else): (u32, u32)) -> CallResult {
            pass_async(hangs).await?;
            Ok(r#type.value() + r#if + 10 * r#else)
        }
    }

    under_conditions [worker inline] |hangs, log| conditional(
        hangs, log.note("here"), (log.note("left"), log.note("right")), log.note("unused"), log.note("a"),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn conditional<#[cfg(any())] Gone: Missing, #[cfg(not(any()))] Here: Into<u32> + Send + 'static>(
            hangs: Hangs,
            #[cfg(any())] gone: Missing,
            #[cfg(not(any()))] here: Here,
            #[cfg(all())] #[allow(unused_variables)] (left, _): (Noted, Noted),
            #[cfg(any())] (gone, _): (Missing, Missing),
            #[cfg_attr(all(), allow(unused_variables))] unused: Noted,
            #[cfg_attr(any(), cfg(any()))] a: Noted,
        ) -> CallResult {
            pass(hangs)?;
            Ok(here.into() + a.value())
        }
    }

    under_conditions_async [async_inline async_task async_worker] |hangs, log| conditional(
        hangs, log.note("here"), log.note("unused"), "key",
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn conditional<#[cfg(any())] Gone: Missing, #[cfg(not(any()))] Here: Into<u32> + Send + 'static>(
            hangs: Hangs,
            #[cfg(any())] gone: &Missing,
            #[cfg(not(any()))] here: Here,
            #[cfg_attr(all(), allow(unused_variables))] unused: Noted,
            #[cfg(not(any()))] key: &'static str,
        ) -> CallResult {
            pass_async(hangs).await?;
            Ok(here.into() + len(key))
        }
    }

    under_lints [worker inline] |hangs, log| levels(hangs, log.note("a"), log.note("bb"), log.note("ccc")) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn levels(
            hangs: Hangs,
            #[expect(unused_variables)] a: Noted,
            #[allow(unused_mut, reason = "on purpose")] mut b: Noted,
            #[warn(unused_mut)] #[deny(unused_variables)] mut c: Noted,
        ) -> CallResult {
            pass(hangs)?;
            c.0 = "changed";
            Ok(b.value() + c.value())
        }
    }

    unused [worker inline] |hangs, log| unused(
        hangs, log.note("first"), log.note("second"), log.note("unnamed"), log.note("third"), log.note("unnamed too"),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        #[allow(unused_variables)] // The signature is under test.
        fn unused(hangs: Hangs, _first: Noted, second: Noted, _: Noted, mut _third: Noted, _: Noted) -> CallResult {
            pass(hangs)?;
            Ok(1)
        }
    }

    unused_async [async_inline async_task async_worker] |hangs, log| unused(
        hangs, log.note("first"), log.note("second"), log.note("unnamed"), log.note("third"), log.note("unnamed too"),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        #[allow(unused_variables)] // The signature is under test.
        async fn unused(
            hangs: Hangs, _first: Noted, second: Noted, _: Noted, mut _third: Noted, _: Noted,
        ) -> CallResult {
            pass_async(hangs).await?;
            Ok(1)
        }
    }

    partly_moved [worker inline] |hangs, log| parts(
        hangs, (log.note("a"), log.note("b")), request(log), log.note("c"),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn parts(hangs: Hangs, pair: (Noted, Noted), request: Request, c: Noted) -> CallResult {
            let first = pair.0;
            pass(hangs)?;
            let Request { rest, .. } = request;
            drop(first);
            Ok(pair.1.value() + rest.value() + c.value())
        }
    }

    partly_moved_async [async_inline async_task async_worker] |hangs, log| parts(
        hangs, (log.note("a"), log.note("b")), request(log), log.note("c"),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn parts(hangs: Hangs, pair: (Noted, Noted), request: Request, c: Noted) -> CallResult {
            let first = pair.0;
            pass_async(hangs).await?;
            let Request { rest, .. } = request;
            drop(first);
            Ok(pair.1.value() + rest.value() + c.value())
        }
    }

    moved_on_some_paths [worker inline] |hangs, log| {
        let moved = paths(hangs, true, log.note("a"), log.note("b"));
        moved.and_then(|moved| Ok(moved + 10 * paths(hangs, false, log.note("aa"), log.note("bb"))?))
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn paths(hangs: Hangs, moves: bool, a: Noted, b: Noted) -> CallResult {
            if moves {
                drop(a);
            }
            pass(hangs)?;
            Ok(b.value())
        }
    }

    moved_on_some_paths_async [async_inline async_task async_worker] |hangs, log| async {
        let moved = paths(hangs, true, log.note("a"), log.note("b")).await?;
        paths(hangs, false, log.note("aa"), log.note("bb")).await.map(|kept| moved + 10 * kept)
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn paths(hangs: Hangs, moves: bool, a: Noted, b: Noted) -> CallResult {
            if moves {
                drop(a);
            }
            pass_async(hangs).await?;
            Ok(b.value())
        }
    }

    shadowed [worker inline] |hangs, log| shadows(hangs, log.note("a"), log.note("b")) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn shadows(hangs: Hangs, a: Noted, b: Noted) -> CallResult {
            let a = a.1.note("new a");
            pass(hangs)?;
            let b = (b, a.1.note("beside b"));
            let hangs = b.0.value();
            Ok(a.value() + hangs)
        }
    }

    shadowed_async [async_inline async_task async_worker] |hangs, log| shadows(
        hangs, log.note("a"), log.note("b"),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn shadows(hangs: Hangs, a: Noted, b: Noted) -> CallResult {
            let a = a.1.note("new a");
            pass_async(hangs).await?;
            let b = (b, a.1.note("beside b"));
            let hangs = b.0.value();
            Ok(a.value() + hangs)
        }
    }

    used_by_options [worker inline] |hangs, log| options(
        hangs, CancelToken::new(), Deadline::after(SOON), Some(log.note("a")), log.note("b"),
    ) => {
        #[cfg_attr($on, timeout(
            ms = limit(hangs), run = $run, upstream = [&stop, &Some(stop.clone())], deadline = until,
            max_abandoned = a.iter().count(),
        ))]
        fn options(hangs: Hangs, stop: CancelToken, until: Deadline, mut a: Option<Noted>, b: Noted) -> CallResult {
            let a = a.take();
            pass(hangs)?;
            assert!(!stop.is_cancelled() && !until.has_passed());
            Ok(a.map_or(0, |a| a.value()) + b.value())
        }
    }

    callers_token [worker inline] |hangs, log| token(hangs, log.note("a"), &CancelToken::new(), log.note("b")) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn token(hangs: Hangs, a: Noted, cancel_token: &CancelToken, b: Noted) -> CallResult {
            cancel_token.check()?;
            pass(hangs)?;
            Ok(a.value() + b.value())
        }
    }

    callers_token_async [async_inline async_task async_worker] |hangs, log| token(
        hangs, log.note("a"), CancelToken::new(), log.note("b"),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run, token = stop))]
        async fn token(hangs: Hangs, a: Noted, mut stop: CancelToken, b: Noted) -> CallResult {
            stop.check()?;
            pass_async(hangs).await?;
            stop = stop.child();
            assert!(!stop.is_cancelled());
            Ok(a.value() + b.value())
        }
    }

    borrowed [inline] |hangs, log| {
        let mut row = [log.note("first"), log.note("second")];
        borrows(hangs, &log.note("a"), &mut log.note("b"), &mut row, "key", &3_u8, &mut |by| by + 1)
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn borrows(
            hangs: Hangs, a: &Noted, b: &mut Noted, row: &mut [Noted], key: &str, of: &dyn std::fmt::Display,
            by: &mut dyn FnMut(u32) -> u32,
        ) -> CallResult {
            pass(hangs)?;
            b.0 = "changed";
            row.swap(0, 1);
            row[0].0 = a.0;
            Ok(by(row[0].value() + b.value()) + len(key) + len(&of.to_string()))
        }
    }

    borrowed_async [async_inline] |hangs, log| async {
        let mut row = [log.note("first"), log.note("second")];
        borrows(hangs, &log.note("a"), &mut log.note("b"), &mut row, "key", &3_u8, &mut |by| by + 1).await
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn borrows(
            hangs: Hangs, a: &Noted, b: &mut Noted, row: &mut [Noted], key: &str, of: &dyn std::fmt::Display,
            by: &mut dyn FnMut(u32) -> u32,
        ) -> CallResult {
            row[1].0 = a.0;
            pass_async(hangs).await?;
            b.0 = "changed";
            row.swap(0, 1);
            Ok(by(row[0].value() + b.value()) + len(key) + len(&of.to_string()))
        }
    }

    boxed [worker inline] |hangs, log| {
        let (once, log) = (log.note("once"), log.clone());
        boxes(hangs, Box::new(|by| by + 1), Box::new(move |by| once.value() + by), len, Arc::new(move |name| log.note(name)))
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn boxes(
            hangs: Hangs, by: Box<dyn Fn(u32) -> u32 + Send>, once: Box<dyn FnOnce(u32) -> u32 + Send + 'static>,
            len: fn(&str) -> u32,
            make: Arc<dyn Fn(&'static str) -> Noted + Send + Sync>,
        ) -> CallResult {
            let made = make("made");
            pass(hangs)?;
            Ok(by(once(made.value())) + len("four"))
        }
    }

    boxed_async [async_inline async_task async_worker] |hangs, log| {
        let (once, log) = (log.note("once"), log.clone());
        boxes(hangs, Box::new(move |by| once.value() + by), Box::pin(async move { log.note("later") }))
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn boxes(
            hangs: Hangs, once: Box<dyn FnOnce(u32) -> u32 + Send>,
            later: Pin<Box<dyn Future<Output = Noted> + Send>>,
        ) -> CallResult {
            pass_async(hangs).await?;
            Ok(once(later.await.value()))
        }
    }
}
