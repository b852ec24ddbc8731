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
    let grace = "`grace` is the time after the cancellation, and `cancel = false` never cancels; drop one of them";
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
