//! Tests of the limit without an option word.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::quote;

use super::expand;
use super::mistakes::{WORDS, check_args, errors};

/// The expansion of a function with these arguments of the attribute, without the option words.
fn expanded(args: &str) -> String {
    let source = format!("#[timeout({args})] fn f(limit: Limits) -> Option<u8> {{ None }}");
    let text = expand(&source).to_string();
    let (begin, words) = text.split_once("const _ :").expect("the words are there");
    let (_, end) = words.split_once(';').expect("the words end");
    format!("{begin}{end}")
}

#[test]
fn a_first_argument_without_a_word_expands_like_the_limit() {
    for value in [
        "\"50ms\"",
        "\"1m 30s\"",
        "LIMIT",
        "Limit",
        "budget",
        "Duration::from_millis(5)",
        "crate::LIMIT",
        "limit.of_call",
        "limit!(5)",
        "limits()",
        "budget / 2",
        "if short { A } else { B }",
        "{ LIMIT }",
        "(LIMIT)",
        "LIMITS[5]",
    ] {
        for rest in [
            "",
            ",",
            ", cancel = false",
            ", name = \"w\", grace = \"5ms\",",
        ] {
            let unnamed = expanded(&format!("{value}{rest}"));
            let named = expanded(&format!("limit = {value}{rest}"));
            assert_eq!(unnamed, named, "{value}{rest}");
            assert!(!unnamed.contains("compile_error"), "{unnamed}");
        }
    }
}

#[test]
fn a_literal_of_a_macro_is_the_limit() {
    let hidden = |tokens: TokenStream| TokenTree::Group(Group::new(Delimiter::None, tokens));
    let item = quote!(
        fn f() -> Option<u8> {
            None
        }
    );
    let (text, zero, number) = (
        hidden(quote!("50ms")),
        hidden(hidden(quote!("0s")).into()),
        hidden(quote!(50)),
    );
    for (args, expected) in [
        (quote!(#text), vec![]),
        (quote!(#text, run = "inline"), vec![]),
        (quote!(#zero), vec!["`limit` must be longer than zero"]),
        (
            quote!(#number),
            vec!["a limit without a name has a unit; write `ms = 50` or `\"50ms\"`"],
        ),
    ] {
        let found = errors(crate::expand(args.clone(), item.clone()));
        assert_eq!(found, expected, "{args}");
    }
    let sum = hidden(quote!(A + B));
    let expansion = crate::expand(quote!(#sum), item).to_string();
    assert!(expansion.contains("= (A + B) ;"), "{expansion}");
}

#[test]
fn a_first_value_that_is_no_duration_is_reported() {
    let duration = "`limit` takes a duration, as in `\"50ms\"`";
    let unit = "`50` has no unit; expected one of `ns`, `us`, `ms`, `s`, `m`, `h`, `d`";
    for (value, expected) in [
        (
            "50",
            "a limit without a name has a unit; write `ms = 50` or `\"50ms\"`",
        ),
        (
            "50ms",
            "a limit without a name has quotes; write `\"50ms\"`",
        ),
        ("50u64", duration),
        ("-50", duration),
        ("1.5", duration),
        ("true", duration),
        ("\"50\"", unit),
        ("\"0s\"", "`limit` must be longer than zero"),
        (
            "\"scan\"",
            "`limit` takes a duration, as in `\"50ms\"`; for the name, write `name = \"scan\"`",
        ),
        ("=", WORDS),
        ("config.limit = 5", WORDS),
    ] {
        check_args(value, &[expected]);
    }
    check_args(
        "50, name = 5",
        &[
            "a limit without a name has a unit; write `ms = 50` or `\"50ms\"`",
            "`name` takes a string, as in `name = \"scan\"`",
        ],
    );
    check_args("\"50ms\" cancel = false", &["expected `,`"]);
}

#[test]
fn a_limit_without_a_name_in_another_place_is_reported() {
    for (value, meant) in [
        ("5", Some("ms = 5")),
        ("5ms", Some("limit = \"5ms\"")),
        ("\"1m 30s\"", Some("limit = \"1m 30s\"")),
        ("Duration::from_secs(5)", Some("limit = ..")),
        ("self.limit", Some("limit = ..")),
        ("limit!(5)", Some("limit = ..")),
        ("5u64", None),
        ("-5", None),
        ("\"scan\"", None),
    ] {
        let hint = meant
            .map(|meant| format!("did you mean `{meant}`? "))
            .unwrap_or_default();
        let rule = "only the first argument may have no name";
        check_args(
            &format!("name = \"w\", {value}"),
            &[&format!("{rule}; {hint}{WORDS}")],
        );
        check_args(&format!("ms = 5, {value}"), &[&format!("{rule}; {WORDS}")]);
        check_args(&format!("\"5s\", {value}"), &[&format!("{rule}; {WORDS}")]);
    }
    check_args("ms = 5, =", &[WORDS]);
}

#[test]
fn a_second_limit_is_reported_at_its_word() {
    for word in ["ms", "secs", "limit"] {
        let value = if word == "limit" { "\"5s\"" } else { "5" };
        for first in ["\"50ms\"", "LIMIT"] {
            let mistake =
                format!("the first argument and `{word}` both set the limit; drop one of them");
            let args = format!("{first}, name = \"w\", {word} = {value}");
            check_args(&args, &[&mistake]);
        }
    }
    let source = "#[timeout(\"50ms\", secs = 5)] fn f() -> Option<u8> { None }";
    let place = expand(source).into_iter().find_map(|token| match token {
        TokenTree::Ident(word) if word == "compile_error" => Some(word.span().byte_range().start),
        _ => None,
    });
    assert_eq!(place, source.find("secs"));
}

#[test]
fn a_lower_case_word_that_resembles_an_option_is_no_limit() {
    for (word, meant) in [
        ("cancle", "cancel"),
        ("can", "cancel"),
        ("max", "max_abandoned"),
        ("timeout", "limit"),
        ("inline", "run = \"inline\""),
        ("d", "deadline"),
    ] {
        let mistake = format!(
            "unknown option `{word}`; did you mean `{meant}`, or `limit = {word}`? {WORDS}"
        );
        check_args(word, &[&mistake]);
        check_args(
            &format!("{word}, secs = 0"),
            &[&mistake, "`secs` must be at least 1"],
        );
        check_args(&word.to_uppercase(), &[]);
    }
    check_args(
        "cancle = false",
        &[&format!(
            "unknown option `cancle`; did you mean `cancel`? {WORDS}"
        )],
    );
    check_args(
        "limit",
        &["`limit` takes a duration, as in `limit = \"1m 30s\"`"],
    );
    check_args("ms(5)", &["`ms` takes an integer, as in `ms = 50`"]);
    check_args(
        "fallback |_| 0, ms = 5",
        &["`fallback` takes a function of `TimeoutError`, as in `fallback = |_| 0`"],
    );
}
