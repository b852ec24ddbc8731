//! What comes through a `macro_rules!` arrives in invisible groups, and means the same.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::quote;

use super::mistakes::errors;

fn hidden(tokens: TokenStream) -> TokenTree {
    TokenTree::Group(Group::new(Delimiter::None, tokens))
}

/// The invisible groups in `tokens`, at any depth.
fn groups(tokens: TokenStream) -> Vec<TokenStream> {
    let mut all = Vec::new();
    for token in tokens {
        if let TokenTree::Group(group) = token {
            if group.delimiter() == Delimiter::None {
                all.push(group.stream());
            }
            all.extend(groups(group.stream()));
        }
    }
    all
}

#[test]
fn a_literal_is_a_literal() {
    let (zero, minus, text, no) = (
        hidden(quote!(0)),
        hidden(quote!(-1)),
        hidden(quote!("inline")),
        hidden(hidden(quote!(false)).into()),
    );
    let item = quote!(
        fn f() -> Option<u8> {
            None
        }
    );
    for (args, expected) in [
        (quote!(ms = #zero), vec!["`ms` must be at least 1"]),
        (quote!(ms = #minus), vec!["`ms` must be at least 1"]),
        (quote!(name = #text, ms = 5, run = #text), vec![]),
        (quote!(ms = 5, cancel = #no), vec![]),
    ] {
        assert_eq!(
            errors(crate::expand(args.clone(), item.clone())),
            expected,
            "{args}"
        );
    }
}

#[test]
fn a_path_is_a_path() {
    let path = hidden(quote!(facade::rt));
    let expansion = crate::expand(
        quote!(ms = 5, crate = #path),
        quote!(
            fn f() -> Option<u8> {
                None
            }
        ),
    );
    assert_eq!(errors(expansion.clone()), [""; 0]);
    assert!(
        expansion
            .to_string()
            .contains("use facade :: rt :: __timeout_runtime as __timeout_p ;"),
        "{expansion}"
    );
}

#[test]
fn a_type_is_looked_into() {
    let (borrow, never) = (hidden(quote!(&str)), hidden(quote!(!)));
    let found = errors(crate::expand(
        quote!(ms = 5),
        quote!(fn f(x: #borrow) -> #never { loop {} }),
    ));
    assert_eq!(
        found,
        [
            "a function that never returns cannot be timed out; return `Result<Infallible, TimeoutError>`",
            "an operation that runs on a worker cannot borrow from its caller; take `String`, or set `run = \"inline\"`",
        ]
    );
}

#[test]
fn a_body_keeps_its_group_and_asks() {
    let (vis, body) = (
        hidden(TokenStream::new()),
        hidden(quote!({
            cancel_token.check()?;
            None
        })),
    );
    let expansion = crate::expand(quote!(ms = 5), quote!(#vis fn f() -> Option<u8> #body));
    assert_eq!(errors(expansion.clone()), [""; 0]);
    let kept = groups(expansion.clone())
        .into_iter()
        .map(|group| group.to_string());
    assert!(
        kept.into_iter()
            .any(|group| group == "{ cancel_token . check () ? ; None }"),
        "{expansion}"
    );
    assert!(
        expansion.to_string().contains("let cancel_token = __token"),
        "{expansion}"
    );
}

#[test]
fn an_item_may_come_whole() {
    let item = quote!(
        fn f() -> Option<u8> {
            None
        }
    );
    let (plain, whole) = (
        crate::expand(quote!(ms = 5), item.clone()),
        crate::expand(quote!(ms = 5), hidden(item).into()),
    );
    assert_eq!(plain.to_string(), whole.to_string());
}

// The mistake was reported at the attribute, which says nothing about where.
#[test]
fn a_group_that_holds_no_body_is_pointed_at() {
    let token: TokenTree = "here"
        .parse::<TokenStream>()
        .expect("a word")
        .into_iter()
        .next()
        .expect("it is there");
    let mut nothing = hidden(TokenStream::new());
    nothing.set_span(token.span());
    let expansion = crate::expand(quote!(ms = 5), quote!(fn f() -> Option<u8> #nothing));
    assert_eq!(errors(expansion.clone()), ["expected a body"]);
    let last = expansion.into_iter().last().expect("an error");
    assert_eq!(format!("{:?}", last.span()), format!("{:?}", token.span()));
}

// What was left over behind the value in such a group was dropped without a word.
#[test]
fn a_group_holds_one_value() {
    let more = hidden(quote!(50 unsafe));
    for (args, mistakes) in [
        (quote!(ms = #more), 1),
        (quote!(ms = 5, grace = f(#more), name = 5), 2),
    ] {
        let item = quote!(
            fn f() -> Option<u8> {
                None
            }
        );
        let found = errors(crate::expand(args.clone(), item));
        assert_eq!(found.len(), mistakes, "{args}: {found:?}");
    }
}
