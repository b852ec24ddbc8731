//! Tests that fragments of a `macro_rules!`, which arrive in invisible groups, keep their meaning.

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
fn a_literal_in_a_group_is_a_literal() {
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
fn a_path_in_a_group_is_a_path() {
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
            .contains("use facade :: rt :: __timeout_options :: private as __timeout_p ;"),
        "{expansion}"
    );
}

#[test]
fn a_type_in_a_group_is_checked() {
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
fn a_body_in_a_group_keeps_the_group_and_gets_its_token() {
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
fn a_whole_item_may_be_in_a_group() {
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

// The mistake was reported at the attribute, which does not show the place.
#[test]
fn a_group_without_a_body_is_reported_at_the_group() {
    let token: TokenTree = "here"
        .parse::<TokenStream>()
        .expect("a word")
        .into_iter()
        .next()
        .expect("the stream has a token");
    let mut nothing = hidden(TokenStream::new());
    nothing.set_span(token.span());
    let expansion = crate::expand(quote!(ms = 5), quote!(fn f() -> Option<u8> #nothing));
    assert_eq!(errors(expansion.clone()), ["expected a body"]);
    let last = expansion.into_iter().last().expect("an error");
    assert_eq!(format!("{:?}", last.span()), format!("{:?}", token.span()));
}

// Further tokens after the value in such a group were dropped without an error.
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

/// The expansion of `args` without spaces, and every invisible group that remains in it.
fn expanded(args: &TokenStream) -> (String, Vec<String>) {
    let item = quote!(
        fn f() -> Option<u8> {
            None
        }
    );
    let expansion = crate::expand(args.clone(), item);
    assert_eq!(errors(expansion.clone()), [""; 0], "{args}");
    let kept = groups(expansion.clone());
    let packed = |tokens: TokenStream| tokens.to_string().replace(' ', "");
    (packed(expansion), kept.into_iter().map(packed).collect())
}

// Each of these was printed without its group: `a + b * 2`.
#[test]
fn a_fragment_stays_one_operand() {
    let (sum, call, minus, block) = (
        hidden(quote!(a + b)),
        hidden(quote!(now())),
        hidden(quote!(-1)),
        hidden(quote!({ a })),
    );
    let twice = hidden(hidden(quote!(a + b)).into());
    let (ty, field, range) = (
        hidden(quote!(Vec<u8>)),
        hidden(quote!(a.make)),
        hidden(quote!(0..1)),
    );
    for (args, expected) in [
        (quote!(ms = #sum * 2), "(a+b)*2"),
        (quote!(secs = 2 * #sum), "2*(a+b)"),
        (quote!(limit = #twice * 2), "(a+b)*2"),
        (quote!(limit = #sum.max(x)), "(a+b).max(x)"),
        (quote!(ms = 5, grace = #call * 2), "now()*2"),
        (quote!(ms = #minus.pow(2)), "(-1).pow(2)"),
        (quote!(ms = #block * 2), "{a}*2"),
        (
            quote!(deadline = #sum),
            "SharedDeadline::set((a+b),__options)",
        ),
        (quote!(ms = 5, max_abandoned = !#sum), "!(a+b)"),
        (quote!(ms = 5, upstream = #sum), "&(a+b)"),
        (quote!(ms = 5, upstream = [#sum, c, #call]), "&(a+b)"),
        (quote!(ms = 5, upstream = a + b), "&(a+b)"),
        (quote!(ms = 5, fallback = |_| #sum * 2), "|_|(a+b)*2"),
        (quote!(ms = 5, on_late = #field), "a.make"),
        (quote!(ms = #field()), "(a.make)()"),
        (quote!(ms = #range.sum()), "(0..1).sum()"),
        (quote!(ms = #ty::new().len()), "Vec::<u8>::new()"),
    ] {
        let (expansion, kept) = expanded(&args);
        assert!(expansion.contains(expected), "{args}: {expansion}");
        assert_eq!(kept, [""; 0], "{args}");
    }
}

// A group inside a call or a macro is the compiler's own, unless a macro rebuilds it.
#[test]
fn a_fragment_inside_other_brackets_keeps_its_group() {
    let sum = hidden(quote!(a + b));
    for args in [
        quote!(ms = f(#sum * 2)),
        quote!(limit = limits[#sum * 2]),
        quote!(ms = 5, grace = grace!(#sum * 2)),
        quote!(ms = 5, fallback = |_| { #sum * 2 }),
    ] {
        assert_eq!(expanded(&args).1, ["a+b"], "{args}");
    }
}

// The length of an array in a signature was split like any other operand. So was a body with inner
// attributes.
#[test]
fn a_fragment_in_a_signature_or_beside_inner_attributes_stays_one_operand() {
    let (sum, bounds) = (hidden(quote!(a + b)), hidden(quote!(dyn Debug + Send)));
    let expansion = crate::expand(
        quote!(ms = 5, run = "inline"),
        quote!(
            fn f(rows: [u8; #sum * 2], shown: &#bounds) -> Option<[u8; 2 * #sum]> {
                #![allow(unused)]
                #sum * 3
            }
        ),
    );
    assert_eq!(errors(expansion.clone()), [""; 0]);
    let text = expansion.to_string().replace(' ', "");
    for expected in [
        "rows:[u8;(a+b)*2]",
        "shown:&(dynDebug+Send)",
        "[u8;2*(a+b)]",
        "{(a+b)*3}",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}
