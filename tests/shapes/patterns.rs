//! Functions whose arguments are destructured by patterns.

#![allow(clippy::redundant_pattern, clippy::toplevel_ref_arg)] // These patterns are shapes too.

use std::convert::Infallible;

use super::*;

struct Pair(Noted, Noted);

struct Empty;

struct Deep {
    pair: (Noted, Pair),
    row: [Request; 2],
}

fn pair(log: &Log) -> Pair {
    Pair(log.note("a"), log.note("bb"))
}

fn deep(log: &Log) -> Deep {
    Deep {
        pair: (log.note("left"), pair(log)),
        row: [request(log), request(log)],
    }
}

/// A pattern and a type from a macro.
macro_rules! both {
    ($left:pat, $right:pat) => {
        Pair($left, $right)
    };
    ($type:ty) => {
        ($type, $type)
    };
}

shapes! { ($on:meta, $run:literal)
    tuple [worker inline] |hangs, log| tuple(
        hangs, (log.note("a"), log.note("bb"), log.note("ccc")), (log.note("first"), 1, log.note("last")),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn tuple(hangs: Hangs, (a, _, mut c): (Noted, Noted, Noted), (.., last): (Noted, u32, Noted)) -> CallResult {
            pass(hangs)?;
            c.0 = "changed";
            Ok(a.value() + 10 * c.value() + 100 * last.value())
        }
    }

    fields [worker inline] |hangs, log| fields(hangs, request(log), request(log), request(log)) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn fields(
            hangs: Hangs, Request { id, .. }: Request, Request { rest: other, id: _ }: Request,
            Request { id: mut one, rest: _two }: Request,
        ) -> CallResult {
            pass(hangs)?;
            one.0 = "changed";
            Ok(id.value() + 10 * other.value() + 100 * one.value())
        }
    }

    fields_async [async_inline async_task async_worker] |hangs, log| fields(
        hangs, request(log), pair(log), request(log),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn fields(
            hangs: Hangs, Request { id, .. }: Request, Pair(_, b): Pair,
            Request { id: mut one, rest: _two }: Request,
        ) -> CallResult {
            pass_async(hangs).await?;
            one.0 = "changed";
            Ok(id.value() + 10 * b.value() + 100 * one.value())
        }
    }

    tuple_struct [worker inline] |hangs, log| parts(hangs, pair(log), pair(log), Empty) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn parts(hangs: Hangs, Pair(a, b): Pair, Pair { 0: _, 1: last }: Pair, Empty: Empty) -> CallResult {
            pass(hangs)?;
            Ok(a.value() + 10 * b.value() + 100 * last.value())
        }
    }

    array [worker inline] |hangs, log| array(
        hangs, [log.note("a"), log.note("bb")], ["first", "left out", "left out too", "last"].map(|name| log.note(name)),
        ["head", "body", "tail"].map(|name| log.note(name)),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn array(
            hangs: Hangs, [a, b]: [Noted; 2], [first, .., _]: [Noted; 4], [head, rest @ ..]: [Noted; 3],
        ) -> CallResult {
            pass(hangs)?;
            Ok(a.value() + 10 * b.value() + 100 * first.value() + head.value() + len(rest[0].0) + len(rest[1].0))
        }
    }

    array_async [async_inline async_task async_worker] |hangs, log| array(
        hangs, [log.note("a"), log.note("bb")], ["head", "body", "tail"].map(|name| log.note(name)),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn array(hangs: Hangs, [a, b]: [Noted; 2], [_, rest @ ..]: [Noted; 3]) -> CallResult {
            pass_async(hangs).await?;
            Ok(a.value() + 10 * b.value() + len(rest[0].0) + len(rest[1].0))
        }
    }

    nested [worker inline] |hangs, log| nested(hangs, deep(log), [(pair(log), 3), (pair(log), 4)]) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn nested(
            hangs: Hangs, Deep { pair: (left, Pair(_, mut b)), row: [Request { id, .. }, second] }: Deep,
            [(Pair(a, ..), four), ref last]: [(Pair, u32); 2],
        ) -> CallResult {
            pass(hangs)?;
            b.0 = "changed";
            Ok(left.value() + b.value() + id.value() + second.rest.value() + a.value() + four + last.1)
        }
    }

    nested_async [async_inline async_task async_worker] |hangs, log| nested(
        hangs, deep(log), [(pair(log), 3), (pair(log), 4)],
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn nested(
            hangs: Hangs, Deep { pair: (left, Pair(_, mut b)), row: [Request { id, .. }, second] }: Deep,
            [(Pair(a, ..), four), ref last]: [(Pair, u32); 2],
        ) -> CallResult {
            pass_async(hangs).await?;
            b.0 = "changed";
            Ok(left.value() + b.value() + id.value() + second.rest.value() + a.value() + four + last.1)
        }
    }

    by_reference [worker inline] |hangs, log| refs(
        hangs, log.note("a"), log.note("b"), (log.note("c"), log.note("d")), request(log), request(log),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn refs(
            hangs: Hangs, ref a: Noted, ref mut b: Noted, (ref c, ref mut d): (Noted, Noted),
            Request { ref id, rest }: Request,
            ref whole @ Request { id: ref part, .. }: Request,
        ) -> CallResult {
            pass(hangs)?;
            b.0 = "changed";
            d.0 = b.0;
            Ok(a.value() + b.value() + c.value() + d.value() + id.value() + rest.value() + whole.rest.value() + part.value())
        }
    }

    by_reference_async [async_inline async_task async_worker] |hangs, log| refs(
        hangs, log.note("a"), log.note("b"), (log.note("c"), log.note("d")), request(log),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn refs(
            hangs: Hangs, ref a: Noted, ref mut b: Noted, (ref c, d): (Noted, Noted),
            ref whole @ Request { id: ref part, .. }: Request,
        ) -> CallResult {
            pass_async(hangs).await?;
            b.0 = "changed";
            Ok(a.value() + b.value() + c.value() + d.value() + whole.rest.value() + part.value())
        }
    }

    bound_whole [worker inline] |hangs, log| whole(hangs, (3, 4), 5, log.note("a"), [6, 7, 8]) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn whole(
            hangs: Hangs, both @ (left, mut right): (u32, u32), count @ 0..: u32, a @ _: Noted,
            mut row @ [first, .., _]: [u32; 3],
        ) -> CallResult {
            pass(hangs)?;
            right += 1;
            row[0] = left;
            Ok(both.0 + both.1 + left + right + count + a.value() + row.iter().sum::<u32>() + first)
        }
    }

    alternatives [worker inline] |hangs, log| either(
        hangs, Err(log.note("a")), Ok(log.note("b")), Ok::<_, Infallible>(log.note("sure")), Err((1, log.note("c"))),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn either(
            hangs: Hangs, (Ok(a) | Err(a)): Result<Noted, Noted>, (Ok(mut b) | Err(mut b)): Result<Noted, Noted>,
            Ok(sure): Result<Noted, Infallible>, (Ok((_, c)) | Err((_, c))): Result<(u8, Noted), (u32, Noted)>,
        ) -> CallResult {
            pass(hangs)?;
            b.0 = "changed";
            Ok(a.value() + 10 * b.value() + 100 * sure.value() + c.value())
        }
    }

    through_references [inline] |hangs, log| through(
        hangs, &(1, 2), &mut (3, log.note("a")), &request(log), &mut request(log), &[4, 5, 6], &&7,
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn through(
            hangs: Hangs, &(one, mut two): &(u32, u32), &mut (ref mut three, ref a): &mut (u32, Noted),
            &Request { ref id, .. }: &Request,
            Request { id: changed, .. }: &mut Request, &[four, .., _]: &[u32; 3], &&seven: &&u32,
        ) -> CallResult {
            pass(hangs)?;
            two += 1;
            *three += 1;
            changed.0 = a.0;
            Ok(one + two + *three + id.value() + changed.value() + four + seven)
        }
    }

    through_references_async [async_inline] |hangs, log| async {
        through(hangs, &(1, 2), &mut (3, log.note("a")), &request(log), &mut request(log), &[4, 5, 6]).await
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn through(
            hangs: Hangs, &(one, mut two): &(u32, u32), &mut (ref mut three, ref a): &mut (u32, Noted),
            &Request { ref id, .. }: &Request,
            Request { id: changed, .. }: &mut Request, &[four, .., _]: &[u32; 3],
        ) -> CallResult {
            two += 1;
            pass_async(hangs).await?;
            *three += 1;
            changed.0 = a.0;
            Ok(one + two + *three + id.value() + changed.value() + four)
        }
    }

    written_by_a_macro [worker inline] |hangs, log| written(
        hangs, pair(log), pair(log), log.note("in parentheses"), (log.note("x"), log.note("y")),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        #[allow(unused_parens)] // The signature is under test.
        fn written(
            hangs: Hangs, both!(a, mut b): Pair, both!(_, ref mut d): Pair, (c): Noted, (_, y): both!(Noted),
        ) -> CallResult {
            pass(hangs)?;
            b.0 = "changed";
            d.0 = b.0;
            Ok(a.value() + 10 * b.value() + c.value() + d.value() + y.value())
        }
    }

    nothing_bound [worker inline] |hangs, log| nothing(
        hangs, (), pair(log), Empty, (log.note("x"), log.note("y")), [log.note("z")],
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn nothing(
            hangs: Hangs, (): (), Pair(..): Pair, Empty {}: Empty, (_, _): (Noted, Noted), [..]: [Noted; 1],
        ) -> CallResult {
            pass(hangs)?;
            Ok(1)
        }
    }

    nothing_bound_async [async_inline async_task async_worker] |hangs, log| nothing(
        hangs, (), pair(log), (log.note("x"), log.note("y")), [log.note("z")],
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn nothing(hangs: Hangs, (): (), Pair(..): Pair, (_, _): (Noted, Noted), [..]: [Noted; 1]) -> CallResult {
            pass_async(hangs).await?;
            Ok(1)
        }
    }
}
