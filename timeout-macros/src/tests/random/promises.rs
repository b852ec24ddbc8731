//! Checks the promises that hold for every expansion.

use std::collections::HashSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::{FnArg, ItemFn, Signature};

use super::Case;
use super::function::{Function, flat, flat_groups, holds, without, without_empty_lists};
use super::places::{Mistake, Places, split_errors};

/// A broken promise, with the text that breaks it.
pub(super) struct Broken {
    pub(super) promise: &'static str,
    found: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken: {}\nfound: {}", self.promise, self.found)
    }
}

fn that(holds: bool, promise: &'static str, found: impl fmt::Display) -> Result<(), Broken> {
    let broken = || Broken {
        promise,
        found: found.to_string(),
    };
    if holds { Ok(()) } else { Err(broken()) }
}

pub(super) fn check(case: &Case) -> Result<(), Broken> {
    let mut places = Places::new(case);
    let (args, item) = (places.mark(&case.args), places.mark(&case.item));
    let expansion = expand(&args, &item)?;
    let again = expand(&args, &item)?;
    that(
        format!("{expansion:?}") == format!("{again:?}"),
        "the same input has the same expansion",
        again,
    )?;
    let (item_tokens, errors) = split_errors(expansion);
    check_texts(&errors, case.mistakes)?;
    check_places(&errors, &places).or_else(|broken| {
        // An error at the end of an item has no token there. One more token gives it a place. The
        // compiler does not call the macro with such an item.
        let more = places.mark(&quote!(;));
        let (_, errors) = split_errors(expand(&args, &quote!(#item #more))?);
        check_places(&errors, &places).map_err(|_| broken)
    })?;
    let function = Function::of(&item);
    if errors.iter().all(|error| error.outside_tests) {
        let function = function.ok_or_else(|| Broken {
            promise: "an expansion without mistakes is a function",
            found: item.to_string(),
        })?;
        check_wrapped(&args, &function, &item_tokens)
    } else {
        check_as_typed(&item, function.as_ref(), &item_tokens)
    }
}

fn expand(args: &TokenStream, item: &TokenStream) -> Result<TokenStream, Broken> {
    let expand = || crate::expand(args.clone(), item.clone());
    catch_unwind(AssertUnwindSafe(expand)).map_err(|_| Broken {
        promise: "the macro does not panic",
        found: "a panic, see above".to_owned(),
    })
}

fn check_texts(errors: &[Mistake], mistakes: Option<usize>) -> Result<(), Broken> {
    let mut known = HashSet::new();
    for Mistake { text, from, to, .. } in errors {
        that(!text.is_empty(), "a mistake is described", from)?;
        that(
            known.insert((text, from, to)),
            "no mistake is reported twice",
            text,
        )?;
    }
    let errors = errors.iter().filter(|error| !error.outside_tests);
    let texts: Vec<_> = errors.map(|error| &error.text).collect();
    that(
        mistakes.is_none_or(|mistakes| mistakes == texts.len()),
        "each mistake is reported, and nothing else",
        format_args!("{texts:#?} for {mistakes:?}"),
    )
}

fn check_places(errors: &[Mistake], places: &Places) -> Result<(), Broken> {
    errors.iter().try_for_each(|mistake| {
        // A missing option has no place of its own.
        let is_nowhere = mistake.text == "one of `ms`, `secs`, `limit`, `deadline` is missing";
        that(
            is_nowhere || places.hold(mistake),
            "a mistake is reported at a token of the input",
            &mistake.text,
        )
    })
}

/// The only item in `tokens`, which is a function.
fn only_function(tokens: TokenStream, promise: &'static str) -> Result<ItemFn, Broken> {
    let found = tokens.to_string();
    syn::parse2(tokens).map_err(|error| Broken {
        promise,
        found: format!("{error} in {found}"),
    })
}

/// After a mistake, the item stays as typed, except for a token in front of its body.
fn check_as_typed(
    item: &TokenStream,
    function: Option<&Function>,
    emitted: &TokenStream,
) -> Result<(), Broken> {
    let typed = flat(item.clone());
    let found = flat(emitted.clone());
    let Some(Function {
        head, body, parsed, ..
    }) = function
    else {
        return that(
            typed == found,
            "an item that is not a function stays as typed",
            emitted,
        );
    };
    // A parameter without a name, as traits of edition 2015 have them, gets `_`.
    let ItemFn {
        attrs, vis, sig, ..
    } = parsed;
    let heads = [head.clone(), quote!(#(#attrs)* #vis #sig)];
    let begin = without_empty_lists(found.clone());
    that(
        heads
            .into_iter()
            .any(|head| begin.starts_with(&without_empty_lists(flat(head)))),
        "after a mistake the signature stays as typed",
        emitted,
    )?;
    that(
        holds(&found, body),
        "after a mistake the body stays as typed",
        emitted,
    )?;
    only_function(
        without(body, flat_groups(emitted.clone())),
        "after a mistake the item can be parsed",
    )
    .map(drop)
}

fn check_wrapped(
    args: &TokenStream,
    function: &Function,
    emitted: &TokenStream,
) -> Result<(), Broken> {
    let Function {
        head,
        body,
        future_block,
        parsed,
    } = function;
    let body = future_block.as_ref().unwrap_or(body);
    let found = flat(emitted.clone());
    that(holds(&found, body), "the body stays as typed", emitted)?;
    let wrapped = only_function(without(body, emitted.clone()), "an expansion can be parsed")?;
    that(
        shown(&parsed.sig) == shown(&wrapped.sig)
            && flat(parsed.vis.to_token_stream()) == flat(wrapped.vis.to_token_stream())
            && flat(quote_all(&parsed.attrs)) == flat(quote_all(&wrapped.attrs)),
        "callers see the signature as typed",
        emitted,
    )?;
    let mut typed = flat(args.clone());
    typed.extend(flat(head.clone()));
    typed.extend(body.iter().cloned());
    let times = |words: &[String], word: &str| words.iter().filter(|found| *found == word).count();
    that(
        times(&found, "__timeout_options") == times(&typed, "__timeout_options") + 1,
        "the runtime's path is named once",
        emitted,
    )?;
    that(
        (times(&found, "unsafe") > 0) == (times(&typed, "unsafe") > 0),
        "an expansion is safe",
        emitted,
    )
}

fn quote_all(parts: &[impl ToTokens]) -> TokenStream {
    quote!(#(#parts)*)
}

/// A signature as callers see it: the types of the parameters, and their names unless generated.
fn shown(sig: &Signature) -> String {
    let mut shown = sig.clone();
    shown.inputs.clear();
    let inputs = sig.inputs.iter().map(|input| match input {
        FnArg::Receiver(receiver) => {
            let mut receiver = receiver.clone();
            receiver.attrs.clear();
            receiver.to_token_stream()
        }
        FnArg::Typed(typed) => {
            let ty = &typed.ty;
            match &*typed.pat {
                syn::Pat::Ident(name)
                    if name.by_ref.is_none()
                        && name.subpat.is_none()
                        && !name.ident.to_string().starts_with("__arg") =>
                {
                    let name = &name.ident;
                    quote!(#name: #ty)
                }
                _ => quote!(_: #ty),
            }
        }
    });
    flat(quote!(#shown #(#inputs,)*)).join(" ")
}
