//! Tests that every input expands to its item, even if the input is broken.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::mistakes::errors;
use super::{expand, split};

// An editor expands the attribute while the user types. If the item is missing then, callers lose
// it.
#[test]
fn half_typed_input_keeps_signature_and_body() {
    let items = [
        "fn w(x: u32) -> Result<u32, Fail> { let s = String::new(); s. }",
        "fn w(x: u32) -> Result<u32, Fail> { cancel_token. }",
        "async fn w(&self, (a, b): (u8, u8)) -> Result<u32, Fail> { foo( cancel_token.check()? ) .. }",
    ];
    for args in [
        "ms = 5",
        "name = \"w\", ms = ",
        "nam = \"w\"",
        "name = \"w\", ms",
        "ms = 5,",
        "ms = 5, n",
        "",
        "=",
    ] {
        for item in items {
            let expansion = expand(&format!("#[timeout({args})] {item}"));
            assert!(errors(expansion.clone()).len() <= 1, "{args}");
            let (_, typed) = split(&format!("#[timeout({args})] {item}"));
            let body = typed
                .into_iter()
                .last()
                .map(|body| body.to_string())
                .unwrap_or_default();
            let expansion = expansion.to_string();
            assert!(expansion.contains(&body), "{body} in {expansion}");
            assert!(expansion.contains("fn w ("), "{expansion}");
            assert!(
                expansion.contains("-> Result < u32 , Fail >"),
                "{expansion}"
            );
        }
    }
}

#[test]
fn after_a_mistake_the_token_is_bound_and_nothing_else_changes() {
    let head = "fn w (mut x : u32) -> Option < u32 > { \
         use :: timeout_runtime :: __timeout_options :: private as __timeout_p ; ";
    let bound = "let cancel_token = __timeout_p :: never_run :: < __timeout_p :: CancelToken > () ; \
         let _ = & cancel_token ; ({ cancel_token }) }";
    let expansion =
        expand("#[timeout(mss = 5)] fn w(mut x: u32) -> Option<u32> { cancel_token }").to_string();
    assert!(expansion.starts_with(head), "{expansion}");
    assert!(expansion.contains(bound), "{expansion}");
    for (head, attributes, body) in [
        (
            "fn w (mut x : u32) -> Option < u32 >",
            "# ! [allow (unused)] ",
            "x",
        ),
        (
            "fn w (cancel_token : u32) -> Option < u32 >",
            "",
            "cancel_token",
        ),
        ("const fn w () -> Option < u32 >", "", "cancel_token"),
    ] {
        let source = format!("#[timeout(mss = 5)] {head} {{ {attributes}{body} }}");
        let expansion = expand(&source).to_string();
        assert!(
            expansion.starts_with(&format!("{head} {{ {attributes}use ")),
            "{expansion}"
        );
        assert!(
            expansion.contains(&format!("}} ({{ {body} }}) }}")),
            "{expansion}"
        );
        assert!(!expansion.contains("let cancel_token"), "{expansion}");
    }
    let expansion = expand("#[timeout(mss = 5)] struct W ;").to_string();
    assert!(expansion.starts_with("struct W ;"), "{expansion}");
}

#[test]
fn no_input_panics() {
    let args = "name = a::<B, C>::D, ms = -5 + , = limit \"x\" (5 { }) crate = $crate r#run == |e, f| :: token = [a]";
    let item = "#[a] pub(crate) const async unsafe extern \"C\" fn r#w<'a, T>(&'a mut self, #[c(d, e)] (x, _): &T, ...) \
                -> ! where T: A { #![d] cancel_token # ! [e] }";
    let parse = |text: &str| text.parse::<TokenStream>().expect("tokens are balanced");
    for args in broken(parse(args)) {
        crate::expand(args, parse(item));
    }
    for item in broken(parse(item)) {
        crate::expand(parse("ms = 5"), item.clone());
        crate::expand(parse("ms = 5, run = \"inline\""), item);
    }
}

/// Variants of `tokens`: cut off at each token, and without each token, at any depth.
fn broken(tokens: TokenStream) -> Vec<TokenStream> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let with = |middle: Option<TokenTree>, at: usize| -> TokenStream {
        tokens[..at]
            .iter()
            .cloned()
            .chain(middle)
            .chain(tokens[at + 1..].iter().cloned())
            .collect()
    };
    let mut all = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        all.push(tokens[..at].iter().cloned().collect());
        all.push(with(None, at));
        if let TokenTree::Group(group) = token {
            for inner in broken(group.stream()) {
                for delimiter in [group.delimiter(), Delimiter::None] {
                    all.push(with(
                        Some(TokenTree::Group(Group::new(delimiter, inner.clone()))),
                        at,
                    ));
                }
            }
        }
    }
    all
}
