//! Tests that every mistake is reported in one compilation, exactly once.

use proc_macro2::{TokenStream, TokenTree};

use super::expand;

pub(super) const WORDS: &str = "expected one of `name`, `ms`, `secs`, `limit`, `cancel`, `grace`, `run`, `token`, `upstream`, `deadline`, `inherit`, `fallback`, `on_late`, \
                     `max_abandoned`, `crate`";

/// The texts of the `compile_error!`s in `tokens`.
pub(super) fn errors(tokens: TokenStream) -> Vec<String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let text = |tokens: &[TokenTree]| match tokens {
        [TokenTree::Ident(name), _, TokenTree::Group(group)] if name == "compile_error" => Some(
            syn::parse2::<syn::LitStr>(group.stream())
                .expect("the argument is a string")
                .value(),
        ),
        _ => None,
    };
    tokens.windows(3).filter_map(text).collect()
}

#[track_caller]
pub(super) fn check(source: &str, expected: &[&str]) {
    assert_eq!(errors(expand(source)), expected, "{source}");
}

/// Checks the mistakes in the arguments of a sync function.
#[track_caller]
pub(super) fn check_args(args: &str, expected: &[&str]) {
    check(
        &format!("#[timeout({args})] fn w(x: u32) -> Result<u32, Fail> {{ Ok(x) }}"),
        expected,
    );
}

#[test]
fn an_unknown_option_is_reported_with_a_suggestion() {
    for (word, meant) in [
        ("nam", Some("name")),
        ("after", Some("ms")),
        ("timeout", Some("limit")),
        ("LIMIT", Some("limit")),
        ("inline", Some("run = \"inline\"")),
        ("colour", None),
    ] {
        let meant = meant
            .map(|meant| format!("did you mean `{meant}`? "))
            .unwrap_or_default();
        check_args(
            &format!("ms = 5, {word} = 1"),
            &[&format!("unknown option `{word}`; {meant}{WORDS}")],
        );
    }
    check_args("ms = 5,, secs = 0", &[WORDS, "`secs` must be at least 1"]);
}

/// Line breaks and bidirectional controls of a value reached the message unescaped.
#[test]
fn every_message_is_one_line() {
    let nasty = "\n\u{1b}[31m\u{85}\u{2028}\u{202e}\u{2066}\u{200f}\u{61c}\u{200b}";
    let sources = [
        format!("#[timeout(limit = r\"5s {nasty}\")] fn w() {{}}"),
        format!("#[timeout(limit = r\"5 x{nasty}\")] fn w() {{}}"),
        format!("#[timeout(limit = r\"5{nasty}\")] fn w() {{}}"),
        format!("#[timeout(run = r\"worker{nasty}\", ms = 5)] fn w() {{}}"),
        format!("#[timeout(deadline = r\"5s{nasty}\", ms = 5)] fn w() {{}}"),
        format!("#[timeout(r\"5s{nasty}\")] fn w() {{}}"),
        format!("#[timeout(ms = 5)] fn w(x: &Rows<{{ r\"{nasty}\".len() }}>) {{}}"),
    ];
    for source in sources {
        let messages = errors(expand(&source));
        assert!(!messages.is_empty(), "{source:?}");
        for message in messages {
            let is_plain = message.chars().all(|c| matches!(c, ' '..='~'));
            assert!(is_plain, "{source:?}: {message:?}");
        }
    }
}

#[test]
fn a_value_without_its_option_is_reported_with_a_suggestion() {
    for (value, meant) in [
        ("5", Some("ms = 5")),
        ("5ms", Some("limit = \"5ms\"")),
        ("\"1m 30s\"", Some("limit = \"1m 30s\"")),
        ("Duration::from_secs(5)", Some("limit = ..")),
        ("self.limit", Some("limit = ..")),
        ("limit!(5)", Some("limit = ..")),
        ("crate::LIMIT", Some("limit = ..")),
        ("5u64", None),
        ("-5", None),
        ("1.5", None),
        ("\"scan\"", None),
        ("=", None),
    ] {
        let hint = meant
            .map(|meant| format!("did you mean `{meant}`? "))
            .unwrap_or_default();
        check_args(value, &[&format!("{hint}{WORDS}")]);
        check_args(&format!("ms = 5, {value}"), &[WORDS]);
    }
    check_args(
        "5, name = 5",
        &[
            &format!("did you mean `ms = 5`? {WORDS}"),
            "`name` takes a string, as in `name = \"scan\"`",
        ],
    );
}

#[test]
fn an_option_that_is_given_twice_is_reported() {
    check_args("ms = 5, ms = 6", &["option `ms` is given twice"]);
    check_args(
        "name = 5, name = \"a\", ms = 5",
        &[
            "`name` takes a string, as in `name = \"scan\"`",
            "option `name` is given twice",
        ],
    );
}

#[test]
fn a_value_of_the_wrong_kind_is_reported() {
    let integer = "`ms` takes an integer, as in `ms = 50`";
    for args in [
        "ms = 1.5",
        "ms = \"50\"",
        "ms = true",
        "ms = 'x'",
        "ms = -1.5",
        "ms",
        "ms(5)",
        "ms: 5",
        "ms == 5",
        "ms => 5",
        "ms = 5ms",
        "ms = 5us",
        "ms =",
        "ms = 5 +",
    ] {
        check_args(args, &[integer]);
    }
    check_args(
        "ms = 5, name = 5",
        &["`name` takes a string, as in `name = \"scan\"`"],
    );
    check_args(
        "ms = 5, name = c\"x\"",
        &["`name` takes a string, as in `name = \"scan\"`"],
    );
    for args in ["cancel = 1", "cancel = maybe", "cancel = \"true\""] {
        check_args(
            &format!("ms = 5, {args}"),
            &["`cancel` takes `true` or `false`, as in `cancel = false`"],
        );
    }
    for args in [
        "token = self",
        "token = a::b",
        "token = a.b",
        "token = \"a b\"",
        "token = \"self\"",
        "token = \"\"",
    ] {
        check_args(
            &format!("ms = 5, {args}"),
            &["`token` takes an identifier, as in `token = stop`"],
        );
    }
    for args in [
        "crate = 5",
        "crate = \"a b\"",
        "crate = a::<u8>",
        "crate = f()",
        "crate = a::try",
        "crate = \"fn\"",
        "crate = Self::x",
    ] {
        check_args(
            &format!("ms = 5, {args}"),
            &["`crate` takes a path, as in `crate = facade::timeout_runtime`"],
        );
    }
    for args in [
        "fallback = 5",
        "fallback = || 5",
        "fallback = move |a, b| 5",
    ] {
        check_args(
            &format!("ms = 5, {args}"),
            &["`fallback` takes a function of `TimeoutError`, as in `fallback = |_| 0`"],
        );
    }
    for text in ["", "5", "|_| 0", "a b", "fn", "a::", "a()", "n/a"] {
        check_args(
            &format!("ms = 5, fallback = {text:?}"),
            &["`fallback` takes a path between quotes; drop the quotes around anything else"],
        );
        check_args(
            &format!("ms = 5, on_late = {text:?}"),
            &["`on_late` takes a path between quotes; drop the quotes around anything else"],
        );
    }
    for args in ["on_late = 5", "on_late = || {}", "on_late = |a, b| {}"] {
        check_args(
            &format!("ms = 5, {args}"),
            &["`on_late` takes a function of the return type, as in `on_late = give_back`"],
        );
    }
    check_args(
        "ms = 5, run = inline",
        &["`run` takes a string, as in `run = \"inline\"`"],
    );
    check_args(
        "limit = 5",
        &["`limit` takes a duration, as in `limit = \"1m 30s\"`"],
    );
    check_args(
        "ms = 5, grace = 5",
        &["`grace` takes a duration, as in `grace = \"250ms\"`"],
    );
}

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

// A macro that accepts only literals in the attributes below it panicked on the path.
#[test]
fn a_path_in_quotes_expands_like_the_path() {
    let with = |fallback: &str, late: &str, token: &str| {
        let args = format!("ms = 5, fallback = {fallback}, on_late = {late}, token = {token}");
        expand(&format!(
            "#[timeout({args})] fn f() -> u8 {{ stop.check() }}"
        ))
        .to_string()
    };
    assert_eq!(
        with("\"a::b\"", "\"<Self as T>::late::<u8>\"", "\"stop\""),
        with("a::b", "<Self as T>::late::<u8>", "stop"),
    );
}

#[test]
fn a_value_out_of_range_is_reported() {
    for args in ["ms = 0", "ms = -1", "ms = 0u64", "ms = 0x0"] {
        check_args(args, &["`ms` must be at least 1"]);
    }
    check_args("secs = 0", &["`secs` must be at least 1"]);
    check_args(
        "ms = 5, max_abandoned = 0",
        &["`max_abandoned` must be at least 1"],
    );
    check_args("limit = \"0s\"", &["`limit` must be longer than zero"]);
    check_args(
        "ms = 5, grace = \"0s\"",
        &["`grace` must be longer than zero"],
    );
    check_args(
        "ms = 99999999999999999999",
        &["`ms` must be at most 18446744073709551615"],
    );
}

/// The compiler's error pointed into the runtime, and did not name the intended option.
#[test]
fn a_duration_in_place_of_a_number_is_reported() {
    for value in [
        "Duration::from_secs(5)",
        "(Duration::from_secs(5))",
        "std::time::Duration::MAX",
        "2 * core::time::Duration::from_millis(5)",
    ] {
        for option in ["ms", "secs"] {
            let mistake =
                format!("`{option}` takes an integer; for a `Duration`, write `limit = ..`");
            check_args(&format!("{option} = {value}"), &[&mistake]);
        }
    }
    check_args("ms = Duration::from_secs(5).as_secs()", &[]);
    check_args("secs = Duration::from_secs(5).as_millis() as u64", &[]);
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

/// The error listed only return types, and a test has none.
#[test]
fn a_function_that_returns_nothing_needs_a_fallback() {
    let mistake = "a function that returns nothing cannot say that its time ran out; return `Result<(), TimeoutError>`, or set `fallback`: in a \
                   test, `fallback = panic_on_timeout`";
    for function in [
        "fn f() {}",
        "async fn f() {}",
        "fn f() -> () {}",
        "fn f() -> impl Future<Output = ()> {}",
    ] {
        check(&format!("#[timeout(ms = 5)] {function}"), &[mistake]);
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
fn a_malformed_duration_is_reported() {
    let units = "expected one of `ns`, `us`, `ms`, `s`, `m`, `h`, `d`";
    check_args(
        "limit = \"5 sec\"",
        &[&format!("unknown unit `sec`; did you mean `s`? {units}")],
    );
    check_args("limit = \"5\"", &[&format!("`5` has no unit; {units}")]);
    check_args(
        "limit = \"1.5s\"",
        &["`1.5s` is not a whole number with a unit, as in `1s 500ms`"],
    );
    check_args(
        "limit = \"99999999999999999999s\"",
        &["this is longer than a `Duration` can hold"],
    );
}

#[test]
fn a_second_or_missing_limit_is_reported() {
    check_args("", &["one of `ms`, `secs`, `limit`, `deadline` is missing"]);
    check_args(
        "name = \"w\"",
        &["one of `ms`, `secs`, `limit`, `deadline` is missing"],
    );
    check_args(
        "limit = \"5s\", ms = 5, secs = 5",
        &[
            "`limit` and `ms` both set the limit; drop one of them",
            "`limit` and `secs` both set the limit; drop one of them",
        ],
    );
}

#[test]
fn a_deadline_can_replace_the_limit() {
    check_args("deadline = until", &[]);
    check_args("deadline = until, ms = 5", &[]);
}

#[test]
fn tokens_and_deadlines_are_expressions() {
    check_args(
        "ms = 5, upstream = \"a\"",
        &["`upstream` takes tokens, as in `upstream = [shutdown, request]`"],
    );
    check_args(
        "ms = 5, upstream = [a, 5]",
        &["`upstream` takes tokens, as in `upstream = [shutdown, request]`"],
    );
    let deadline =
        "`deadline` takes a `Deadline` or an `Instant`, as in `deadline = request.deadline`";
    check_args("deadline = 5", &[deadline]);
    check_args("deadline = \"noon\"", &[deadline]);
    check_args(
        "deadline = \"5s\"",
        &[&format!("{deadline}; did you mean `limit = \"5s\"`?")],
    );
    check_args(
        "ms = 5, inherit = 0",
        &["`inherit` takes `true` or `false`, as in `inherit = false`"],
    );
}

#[test]
fn an_option_that_mentions_a_part_of_a_pattern_is_reported() {
    let unseen = |part| {
        format!(
            "options cannot see `{part}`, which is part of a pattern; take the argument whole, and take it apart in the body"
        )
    };
    check(
        "#[timeout(ms = from + to, grace = rest.limit, upstream = [stop, all])] fn f((from, to): (u64, u64), S { ref rest, .. }: S, all @ [_, ..]: [u8; 4]) -> Option<u8> { None }",
        &[&unseen("from"), &unseen("rest"), &unseen("all")],
    );
    check(
        "#[timeout(ms = range.0, fallback = |from| None)] fn f(range: (u64, u64), (from, to): (u64, u64)) -> Option<u8> { None }",
        &[],
    );
    check(
        "#[timeout(ms = from, secs = 0)] fn f(#[cfg(unix)] (from, to): (u64, u64)) -> Option<u8> { None }",
        &["`secs` must be at least 1"],
    );
    // As a `macro_rules!` generates it, where the hygiene of the two names differs.
    check(
        "#[timeout(ms = from)] fn f(from: u64, (from, to): (u64, u64)) -> Option<u8> { None }",
        &[],
    );
}

#[test]
fn options_that_contradict_each_other_are_reported() {
    let inline = "`cancel = false` lets the operation outlive its call, `run = \"inline\"` does not; drop one of them";
    check_args("ms = 5, run = \"inline\", cancel = false", &[inline]);
    let grace = "`grace` follows the signal that `cancel = false` holds back; drop one of them";
    check_args("ms = 5, grace = \"5s\", cancel = false", &[grace]);
    check_args(
        "ms = 5, grace = \"5s\", cancel = false, run = \"inline\"",
        &[grace, inline],
    );
    check_args(
        "ms = 5, run = \"task\"",
        &["`run = \"task\"` takes an `async fn`; use `\"worker\"` or `\"inline\"`"],
    );
    check_args(
        "ms = 5, run = \"inlin\"",
        &[
            "unknown value `inlin` of `run`; did you mean `inline`? expected one of `worker`, `inline`, `task`",
        ],
    );
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
