//! Functions by body: control flow, items, nesting, shadowing and borrows.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::{self, Debug};
use std::rc::Rc;

use timeout_runtime::CallStatus;

use super::*;

#[derive(Debug)]
struct Failed(#[allow(dead_code)] Option<TimeoutError>); // Only `Debug` reads the field.

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Debug::fmt(self, f)
    }
}

impl Error for Failed {}

impl From<TimeoutError> for Failed {
    fn from(error: TimeoutError) -> Self {
        Self(Some(error))
    }
}

shapes! { ($on:meta, $run:literal)
    question_marks [worker inline] |hangs, log| asks(hangs, Some(log.note("a")), Ok(log.note("b"))) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn asks(
            hangs: Hangs, a: Option<Noted>, b: Result<Noted, Failed>,
        ) -> Result<u32, Box<dyn Error + Send + Sync>> {
            let a = a.ok_or(Failed(None))?;
            pass(hangs)?;
            let number: u32 = "7".parse()?;
            Ok(a.value() + b?.value() + number)
        }
    }

    question_marks_async [async_inline async_task async_worker] |hangs, log| asks(
        hangs, Some(log.note("a")), Ok(log.note("b")),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn asks(
            hangs: Hangs, a: Option<Noted>, b: Result<Noted, Failed>,
        ) -> Result<u32, Box<dyn Error + Send + Sync>> {
            let a = a.ok_or(Failed(None))?;
            pass_async(hangs).await?;
            let number: u32 = "7".parse()?;
            Ok(a.value() + b?.value() + number)
        }
    }

    early_returns [worker inline] |hangs, log| {
        let early = returns(hangs, log.note("a"), log.note("b"));
        early.and_then(|early| Ok(early + returns(hangs, log.note("a"), log.note("bb"))?))
    } => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        #[allow(clippy::needless_return)] // The return is under test.
        fn returns(hangs: Hangs, a: Noted, b: Noted) -> CallResult {
            pass(hangs)?;
            let _local = b.1.note("local");
            if a.value() == b.value() {
                return Ok(0);
            }
            drop(a);
            return Ok(b.value());
        }
    }

    only_a_return [worker inline] |hangs, log| only(hangs, log.note("a")) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        #[allow(clippy::needless_return)] // The return is under test.
        fn only(hangs: Hangs, a: Noted) -> CallResult {
            return pass(hangs).map(|()| a.value());
        }
    }

    only_a_return_async [async_inline async_task async_worker] |hangs, log| only(hangs, log.note("a")) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        #[allow(clippy::needless_return)] // The return is under test.
        async fn only(hangs: Hangs, a: Noted) -> CallResult {
            return pass_async(hangs).await.map(|()| a.value());
        }
    }

    only_a_loop [worker inline] |hangs, log| only(hangs, vec![log.note("a"), log.note("b")]) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn only(hangs: Hangs, mut all: Vec<Noted>) -> Option<Noted> {
            loop {
                let last = all.pop()?;
                pass(hangs).ok()?;
                if all.is_empty() {
                    return Some(last);
                }
            }
        }
    }

    only_a_loop_async [async_inline async_task async_worker] |hangs, log| only(
        hangs, vec![log.note("a"), log.note("b")],
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn only(hangs: Hangs, mut all: Vec<Noted>) -> Option<Noted> {
            loop {
                let last = all.pop()?;
                pass_async(hangs).await.ok()?;
                if all.is_empty() {
                    return Some(last);
                }
            }
        }
    }

    labels [worker inline] |hangs, log| labelled(hangs, log.note("a")) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn labelled(hangs: Hangs, a: Noted) -> CallResult {
            let found = 'rows: loop {
                let _inner = a.1.note("inner");
                'row: for row in 0.. {
                    for column in 0..row {
                        if column == 3 {
                            break 'rows row;
                        }
                        if row < 5 {
                            continue 'row;
                        }
                    }
                }
            };
            let checked = 'checks: {
                let _inner = a.1.note("inner too");
                if found > 3 {
                    break 'checks 1;
                }
                pass(hangs)?;
                2
            };
            pass(hangs)?;
            Ok(found + checked)
        }
    }

    let_else [worker inline] |hangs, log| otherwise(hangs, Some(log.note("a")), Err(log.note("b"))) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn otherwise(hangs: Hangs, a: Option<Noted>, b: Result<u32, Noted>) -> CallResult {
            let Some(a) = a else { return Ok(0) };
            pass(hangs)?;
            let Ok(b) = b else {
                let _late = a.1.note("late");
                return Ok(a.value());
            };
            Ok(a.value() + b)
        }
    }

    matches [worker inline] |hangs, log| matched(hangs, Some(log.note("a")), (3, log.note("b"))) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn matched(hangs: Hangs, a: Option<Noted>, b: (u32, Noted)) -> CallResult {
            match pass(hangs) {
                Ok(()) => {}
                Err(error) if error.status() != CallStatus::NotStarted => return Err(error),
                Err(error) => Err(error)?,
            }
            match (a, b) {
                (None, _) => Ok(0),
                (Some(a), (of @ (1 | 3), _)) if a.value() == 1 => Ok(of + a.value()),
                (Some(_), (_, b)) => Ok(b.value()),
            }
        }
    }

    never_falls_through [worker inline] |hangs, log| falls(hangs, log.note("a")) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn falls(hangs: Hangs, a: Noted) -> CallResult {
            pass(hangs)?;
            match a.value() {
                1 => Ok(7),
                _ => unreachable!("{}", a.0),
            }
        }
    }

    items_inside [worker inline] |hangs, log| inside(hangs, log.note("a")) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn inside(hangs: Hangs, a: Noted) -> CallResult {
            #![allow(clippy::items_after_statements)]
            use std::collections::BTreeMap as Map;

            const ONE: u32 = 1;
            static TWO: u32 = two();

            const fn two() -> u32 {
                2
            }

            struct Inner<T>(T);

            impl<T: Into<u32>> Inner<T> {
                fn get(self) -> u32 {
                    self.0.into()
                }
            }

            macro_rules! three {
                () => {
                    ONE + TWO
                };
            }

            pass(hangs)?;
            let map = Map::from([(three!(), a)]);
            return Ok(map.into_iter().map(|(key, a)| key + Inner(a).get() + FOUR).sum());

            const FOUR: u32 = 4;
        }
    }

    limited_inside [worker inline] |hangs, log| outside(hangs, log.note("a"), log.note("b")) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn outside(hangs: Hangs, a: Noted, b: Noted) -> CallResult {
            #[cfg_attr($on, timeout(secs = 600, run = $run))]
            fn inside(hangs: Hangs, (a, _): (Noted, u8)) -> Option<Noted> {
                pass(hangs).ok()?;
                Some(a)
            }
            pass(hangs)?;
            let a = inside(hangs, (a, 7)).unwrap();
            Ok(a.value() + b.value())
        }
    }

    closures [worker inline] |hangs, log| closures(hangs, log.note("a"), log.note("b"), log.note("c")) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        #[allow(clippy::needless_return)] // The return must leave only the closure.
        fn closures(hangs: Hangs, a: Noted, b: Noted, c: Noted) -> CallResult {
            let first = |by: u32| -> CallResult {
                if by == 0 {
                    return Ok(a.value());
                }
                pass(hangs)?;
                return Ok(by);
            };
            let owns = move || b.value();
            first(1)?;
            let more = std::thread::scope(|scope| scope.spawn(|| c.value()).join().unwrap());
            let mut count = 0;
            let mut counts = || count += 1;
            counts();
            Ok(first(0)? + owns() + more + count)
        }
    }

    returns_a_closure [worker inline] |hangs, log| captures(
        hangs, log.note("a"), log.note("b"), log.note("c"),
    ).map(|made| made(3)) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn captures(
            hangs: Hangs, a: Noted, b: Noted, c: Noted,
        ) -> Result<Box<dyn FnOnce(u32) -> u32 + Send>, TimeoutError> {
            pass(hangs)?;
            let c = (c, a.1.note("beside"));
            Ok(Box::new(move |by| b.value() + c.0.value() + by))
        }
    }

    locks_in_the_tail [worker inline] |hangs, log| locks(
        hangs, Mutex::new(log.note("a")), Mutex::new(log.note("b")),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn locks(hangs: Hangs, one: Mutex<Noted>, other: Mutex<Noted>) -> CallResult {
            pass(hangs)?;
            let one = &one;
            match one.lock().unwrap().value() {
                1 => Ok(other.lock().unwrap_or_else(|_| unreachable!()).1.note("of the tail").value()),
                _ => unreachable!(),
            }
        }
    }

    borrows_in_the_tail [worker inline] |hangs, log| borrows(
        hangs, Mutex::new(log.note("a")), HashMap::from([("key", log.note("b"))]),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn borrows(hangs: Hangs, lock: Mutex<Noted>, map: HashMap<&'static str, Noted>) -> CallResult {
            pass(hangs)?;
            let _local = lock.lock().unwrap().1.note("local");
            Ok(lock.lock().unwrap().value() + map.get(&*String::from("key")).unwrap().value())
        }
    }

    borrows_in_the_tail_async [async_inline async_task async_worker] |hangs, log| borrows(
        hangs, Mutex::new(log.note("a")), log.note("b"),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn borrows(hangs: Hangs, lock: Mutex<Noted>, b: Noted) -> CallResult {
            pass_async(hangs).await?;
            let _local = b.1.note("local");
            Ok(lock.lock().unwrap().value() + b.1.note("of the tail").value())
        }
    }

    temporaries [worker inline] |hangs, log| temporary(hangs, log.note("a"), Some(log.note("b"))) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn temporary(hangs: Hangs, a: Noted, b: Option<Noted>) -> CallResult {
            let make = |name| a.1.note(name);
            make("of a statement").value();
            let kept = &make("made longer");
            let _ = make("not bound");
            let _ = &b;
            let length = make("of a let").value();
            if let Some(_) = Some(make("of a condition")) {
                make("in a branch");
            }
            while make("of a loop").value() == 0 {}
            pass(hangs)?;
            _ = make("assigned");
            let sum = match make("of a match").value() {
                other => other + length,
            };
            Ok(sum + kept.value() + make("of the tail").value())
        }
    }

    recursion [worker inline] |hangs, log| recursive(hangs, 3, log.note("a")) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn recursive(hangs: Hangs, depth: u32, a: Noted) -> CallResult {
            pass(hangs)?;
            let deeper = a.1.note("deeper");
            Ok(match depth {
                0 => 0,
                _ => 1 + mutual(hangs, depth - 1, deeper)?,
            })
        }

        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn mutual(hangs: Hangs, depth: u32, a: Noted) -> CallResult {
            recursive(hangs, depth, a)
        }
    }

    recursion_async [async_inline] |hangs, log| recursive(hangs, 3, log.note("a")) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn recursive(hangs: Hangs, depth: u32, a: Noted) -> CallResult {
            pass_async(hangs).await?;
            let deeper = a.1.note("deeper");
            Ok(match depth {
                0 => 0,
                _ => 1 + Box::pin(recursive(hangs, depth - 1, deeper)).await?,
            })
        }
    }

    async_blocks [async_inline async_task async_worker] |hangs, log| blocks(
        hangs, log.note("a"), log.note("b"), log.note("c"),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn blocks(hangs: Hangs, a: Noted, b: Noted, c: Noted) -> CallResult {
            let first = async {
                pass_async(hangs).await?;
                if a.value() == 1 {
                    return Ok(2);
                }
                Ok::<_, TimeoutError>(a.value())
            };
            let second = async move { b.value() };
            let third = async |by: &u32| c.value() + by;
            let (first, second) = tokio::join!(first, second);
            Ok(first? + second + third(&3).await)
        }
    }

    early_returns_async [async_inline async_task async_worker] |hangs, log| returns(
        hangs, Some(log.note("a")), Err(log.note("b")),
    ) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn returns(hangs: Hangs, a: Option<Noted>, b: Result<u32, Noted>) -> CallResult {
            let Some(a) = a else { return Ok(0) };
            let found = 'rows: loop {
                let _inner = a.1.note("inner");
                pass_async(hangs).await?;
                for row in 0.. {
                    if let (5, Err(b)) = (row, &b) {
                        break 'rows row + b.value();
                    }
                }
            };
            drop(a);
            match pass_async(hangs).await {
                Ok(()) if found > 0 => return Ok(found),
                outcome => outcome?,
            }
            Ok(0)
        }
    }

    held_across_an_await [async_inline async_worker] |hangs, log| holds(hangs, log.note("a"), log.note("b")) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        async fn holds(hangs: Hangs, a: Noted, b: Noted) -> CallResult {
            let held = Rc::new((a, b.1.note("beside")));
            let again = Rc::clone(&held);
            pass_async(hangs).await?;
            drop(again);
            Ok(held.0.value() + b.value())
        }
    }

    an_executor_inside [worker inline] |hangs, log| inside(hangs, log.note("a"), log.note("b")) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn inside(hangs: Hangs, a: Noted, b: Noted) -> CallResult {
            pass(hangs)?;
            block_on(async move {
                pass_async(hangs).await?;
                Ok(a.value() + b.value())
            })
        }
    }

    own_token [worker inline] |hangs, log| own(hangs, log.note("a")) => {
        #[cfg_attr($on, timeout(ms = limit(hangs), run = $run))]
        fn own(hangs: Hangs, a: Noted) -> CallResult {
            let cancel_token = (a.1.note("not a token"), 7);
            pass(hangs)?;
            let text = format!("{:?}", cancel_token.1);
            Ok(cancel_token.0.value() + len(&text))
        }
    }
}
