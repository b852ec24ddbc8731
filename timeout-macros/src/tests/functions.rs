//! Tests that a function which the attribute cannot wrap is refused with a remedy.

use super::expand;
use super::mistakes::{check, errors};

// `#[instrument]` lost its span, or the fields of a pattern, without an error.
#[test]
fn an_instrument_below_that_would_miss_something_is_reported() {
    let future = "`#[instrument]` below `#[timeout]` would miss this future, which is made behind other statements; put it above";
    let pattern =
        "`#[instrument]` below `#[timeout]` cannot see the parts of this pattern; put it above";
    for attribute in [
        "#[instrument]",
        "#[tracing::instrument(ret)]",
        "#[cfg_attr(feature = \"trace\", inline, instrument)]",
    ] {
        for (function, expected) in [
            (
                "fn f(x: u8) -> impl Future<Output = Option<u8>> { let x = x + 1; async move { Some(x) } }",
                &[future][..],
            ),
            (
                "fn f() -> Pin<Box<dyn Future<Output = Option<u8>>>> { async fn g() {} Box::pin(g()) }",
                &[future],
            ),
            (
                "fn f() -> impl Future<Output = Option<u8>> { async move { None } }",
                &[],
            ),
            (
                "fn f((a, ref b): &(u8, u8)) -> impl Future<Output = Option<u8>> { async move { None } }",
                &[],
            ),
            ("fn f() -> impl Future<Output = Option<u8>> { work() }", &[]),
            (
                "async fn f() -> Option<u8> { let x = 5; async move { Some(x) } }",
                &[],
            ),
            ("fn f(ref x: u8, y: u8) -> Option<u8> { None }", &[pattern]),
            (
                "async fn f((a, pair!(b, c)): (u8, (u8, u8))) -> Option<u8> { None }",
                &[pattern],
            ),
            (
                "fn f((a, mut b): (u8, u8), _: u8, P { x, .. }: P) -> Option<u8> { None }",
                &[],
            ),
        ] {
            check(
                &format!("#[timeout(ms = 5)] {attribute} {function}"),
                expected,
            );
        }
    }
}

/// The compiler's error did not name the bounds, and came twice for async functions.
#[test]
fn an_error_that_cannot_move_between_threads_is_reported() {
    let mistake = "an error that comes back from another thread must be `Send`; write `dyn Error + Send + Sync`, or set `run = \"inline\"`";
    for error in [
        "Box<dyn Error>",
        "Box<dyn std::error::Error + 'static>",
        "Arc<Box<(dyn Error + Sync)>>",
    ] {
        for (args, function) in [
            ("ms = 5", "fn"),
            ("ms = 5, run = \"task\"", "async fn"),
            ("ms = 5, run = \"worker\"", "async fn"),
        ] {
            check(
                &format!("#[timeout({args})] {function} f() -> Result<u8, {error}> {{ Ok(5) }}"),
                &[mistake],
            );
        }
        check(
            &format!("#[timeout(ms = 5)] async fn f() -> Result<u8, {error}> {{ Ok(5) }}"),
            &[],
        );
        check(
            &format!(
                "#[timeout(ms = 5, run = \"inline\")] fn f() -> Result<u8, {error}> {{ Ok(5) }}"
            ),
            &[],
        );
    }
    check(
        "#[timeout(ms = 5)] fn f() -> Result<u8, Box<dyn Error + Send + Sync>> { Ok(5) }",
        &[],
    );
    check(
        "#[timeout(ms = 5)] fn f() -> Result<u8, Box<dyn Failure>> { Ok(5) }",
        &[],
    );
}

const NOTHING: &str = "a function that returns nothing cannot say that its time ran out; return `Result<(), TimeoutError>`, or set \
                       `fallback`, as in `fallback = panic_on_timeout`";

/// Whether the expansion is an error outside test builds only.
fn is_right_in_tests(source: &str) -> bool {
    let expansion = expand(source).to_string();
    expansion.contains("__timeout_p :: TestError (__error) . fail ()")
        && expansion.contains("} # [cfg (not (test))] :: core :: compile_error !")
}

#[test]
fn a_function_that_returns_nothing_needs_a_fallback() {
    for function in [
        "fn f(x: u8) {}",
        "fn f(self) {}",
        "fn f<T>() {}",
        "fn f<const N: usize>() -> () {}",
        "async fn f() {}",
        "fn f() -> impl Future<Output = ()> {}",
    ] {
        let source = format!("#[timeout(ms = 5)] {function}");
        check(&source, &[NOTHING]);
        assert!(!is_right_in_tests(&source), "{source}");
        check(
            &format!("#[timeout(ms = 5, fallback = |_| ())] {function}"),
            &[],
        );
        check(
            &format!("#[timeout(ms = 5, fallback = 5)] {function}"),
            &["`fallback` takes a function of `TimeoutError`, as in `fallback = |_| 0`"],
        );
    }
}

#[test]
fn a_test_that_returns_nothing_needs_no_fallback() {
    for attribute in [
        "#[test]",
        "#[should_panic] #[tokio::test(start_paused = true)] #[ignore]",
        "#[::core::prelude::v1::test]",
        "#[rstest] #[case(7)]",
        "#[cfg_attr(not(miri), test)]",
    ] {
        for function in [
            "fn f() {}",
            "fn f(x: u8) -> () {}",
            "async fn f() {}",
            "fn f() -> impl Future<Output = ()> {}",
        ] {
            let source = format!("#[timeout(ms = 5)] {attribute} {function}");
            check(&source, &[]);
            let expansion = expand(&source).to_string();
            assert!(
                expansion.contains("TestError (__error) . fail ()"),
                "{expansion}"
            );
            let source = format!("#[timeout(ms = 5, fallback = |_| ())] {attribute} {function}");
            check(&source, &[]);
            let expansion = expand(&source).to_string();
            assert!(!expansion.contains("TestError"), "{expansion}");
        }
        check(
            &format!("#[timeout(ms = 0)] {attribute} fn f() {{}}"),
            &["`ms` must be at least 1"],
        );
    }
}

// rustc removes a `#[test]` above before it expands the attribute.
#[test]
fn a_function_that_may_be_a_test_needs_a_fallback_outside_test_builds() {
    for function in ["fn f() {}", "pub fn f() -> () {}", "fn f<'a>() {}"] {
        let source = format!("#[timeout(ms = 5)] {function}");
        check(&source, &[NOTHING]);
        assert!(is_right_in_tests(&source), "{source}");
    }
}

#[test]
fn a_returned_future_runs_only_inline() {
    let elsewhere = "a returned future runs inline, where its function has made it; write an `async fn` to run it elsewhere";
    let outlives = "`cancel = false` lets the operation outlive its call, a returned future does not; write an `async fn`";
    for output in [
        "impl Future<Output = Option<u8>>",
        "Pin<Box<dyn Future<Output = Option<u8>>>>",
    ] {
        for (args, expected) in [
            ("ms = 5", None),
            ("ms = 5, run = \"inline\"", None),
            ("ms = 5, run = \"task\"", Some(elsewhere)),
            ("ms = 5, run = \"worker\", cancel = false", Some(elsewhere)),
            ("ms = 5, cancel = false", Some(outlives)),
        ] {
            check(
                &format!("#[timeout({args})] fn f(x: &str) -> {output} {{ work(x) }}"),
                expected.as_slice(),
            );
        }
    }
}

#[test]
fn a_function_that_cannot_be_wrapped_is_refused_with_a_remedy() {
    let constant = "a `const fn` cannot be timed out; drop `const`";
    let foreign = "an `extern fn` cannot be timed out; annotate a plain function that it calls";
    let insecure = "an `unsafe fn` can only run inline; set `run = \"inline\"`";
    check(
        "#[timeout(ms = 5)] const fn f() -> Option<u8> { None }",
        &[constant],
    );
    check(
        "#[timeout(ms = 5)] extern \"C\" fn f() -> Option<u8> { None }",
        &[foreign],
    );
    check(
        "#[timeout(ms = 5)] unsafe fn f() -> Option<u8> { None }",
        &[insecure],
    );
    check(
        "#[timeout(ms = 5)] const unsafe extern fn f() -> Option<u8> { None }",
        &[constant, foreign, insecure],
    );
    check(
        "#[timeout(ms = 5, run = \"inline\")] fn f(x: u8, ...) -> Option<u8> { None }",
        &["a variadic function cannot be timed out; take a slice"],
    );
    check(
        "#[timeout(ms = 5)] fn f() -> ! { loop {} }",
        &[
            "a function that never returns cannot be timed out; return `Result<Infallible, TimeoutError>`",
        ],
    );
    check(
        "#[timeout(ms = 5)] fn f(&self) -> Option<u8>;",
        &["a method without a body cannot be timed out; annotate its implementations"],
    );
    for item in [
        "struct S;",
        "impl S {}",
        "const X: u8 = 5;",
        "pub unsafe trait T {}",
        "extern \"C\" {}",
        "let x = 5;",
        "",
    ] {
        assert_eq!(
            errors(expand(&format!("#[timeout(ms = 5)] {item}"))).len(),
            1,
            "{item}"
        );
    }
}

#[test]
fn a_borrow_that_cannot_move_is_refused_with_an_owned_type() {
    let owned = |owned| {
        format!(
            "an operation that runs on a worker cannot borrow from its caller; take {owned}, or set `run = \"inline\"`"
        )
    };
    check(
        "#[timeout(ms = 5)] fn f(&self, a: &str, b: &[u8], c: &mut Map, d: Option<&u8>, e: &'static str, f: &Map) -> Option<u8> { None }",
        &[
            &owned("`self: Arc<Self>`"),
            &owned("`String`"),
            &owned("`Vec<u8>`"),
            "an operation that runs on a worker cannot borrow from its caller; take and return owned values, or set `run = \"inline\"`",
            &owned("an owned value"),
            &owned("`Arc<Map>`"),
        ],
    );
    let inline = "an operation that runs on a worker cannot borrow from its caller; take and return owned values, or set `run = \"inline\"`";
    for signature in [
        "fn f(&mut self) -> Option<u8>",
        "fn f(self: Pin<&mut Self>) -> Option<u8>",
        "fn f(&self) -> Option<&u8>",
        "fn f(x: &str) -> Work<'_, u8>",
    ] {
        check(
            &format!("#[timeout(ms = 5)] {signature} {{ None }}"),
            &[inline],
        );
        check(
            &format!("#[timeout(ms = 5, cancel = false)] {signature} {{ None }}"),
            &[
                "an operation that runs on a worker cannot borrow from its caller; take and return owned values",
            ],
        );
    }
    check(
        "#[timeout(ms = 5)] async fn f(&self, a: &str) -> Option<u8> { None }",
        &[],
    );
    check(
        "#[timeout(ms = 5)] fn f(cancel_token: &CancelToken, #[cfg(unix)] a: &str) -> Option<u8> { None }",
        &[],
    );
    check(
        "#[timeout(ms = 5, cancel = false)] async fn f(a: &str) -> Option<u8> { None }",
        &["an operation that runs as a task cannot borrow from its caller; take `String`"],
    );
}
