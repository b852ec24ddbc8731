//! Checks the places at which mistakes are reported.

use std::collections::HashSet;

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use syn::LitStr;

use super::Case;

/// Gives each token of the input a span of its own, which copies of the token keep.
pub(super) struct Places {
    free: Vec<Span>,
    begins: HashSet<String>,
    ends: HashSet<String>,
}

impl Places {
    pub(super) fn new(case: &Case) -> Self {
        let count = count(&case.args) + count(&case.item) + 1;
        let text: TokenStream = "x ".repeat(count).parse().expect("identifiers");
        Self {
            free: text.into_iter().map(|token| token.span()).collect(),
            begins: HashSet::new(),
            ends: HashSet::new(),
        }
    }

    /// Whether `mistake` begins at the start and ends at the end of a token of the input.
    pub(super) fn hold(&self, mistake: &Mistake) -> bool {
        [&mistake.from, &mistake.to].into_iter().all(|place| {
            let (begin, end) = split(place);
            self.begins.contains(begin) && self.ends.contains(end)
        })
    }

    pub(super) fn mark(&mut self, tokens: &TokenStream) -> TokenStream {
        let place = |token: TokenTree| {
            let mut token = match token {
                TokenTree::Group(group) => {
                    let inner = self.mark(&group.stream());
                    TokenTree::Group(Group::new(group.delimiter(), inner))
                }
                token => token,
            };
            let span = self.free.pop().expect("`new` made one span for each token");
            let place = format!("{span:?}");
            let (begin, end) = split(&place);
            self.begins.insert(begin.to_owned());
            self.ends.insert(end.to_owned());
            token.set_span(span);
            token
        };
        tokens.clone().into_iter().map(place).collect()
    }
}

/// The start and the end in a span such as `bytes(7..9)`.
fn split(place: &str) -> (&str, &str) {
    place.split_once("..").expect("a span prints as a range")
}

fn count(tokens: &TokenStream) -> usize {
    let count_tree = |token: TokenTree| match token {
        TokenTree::Group(group) => 1 + count(&group.stream()),
        _ => 1,
    };
    tokens.clone().into_iter().map(count_tree).sum()
}

pub(super) struct Mistake {
    pub(super) text: String,
    pub(super) from: String,
    pub(super) to: String,
    /// Whether it is none in a test build.
    pub(super) outside_tests: bool,
}

/// The item, and the `::core::compile_error! { … }` calls after it.
pub(super) fn split_errors(expansion: TokenStream) -> (TokenStream, Vec<Mistake>) {
    const LENGTH: usize = 8;
    let mut tokens: Vec<TokenTree> = expansion.into_iter().collect();
    let mut errors = Vec::new();
    while let Some(mut error) = last_error(&tokens) {
        tokens.truncate(tokens.len() - LENGTH);
        error.outside_tests = ends_with_condition(&tokens);
        if error.outside_tests {
            tokens.truncate(tokens.len() - 2);
        }
        errors.push(error);
    }
    errors.reverse();
    (tokens.into_iter().collect(), errors)
}

fn last_error(tokens: &[TokenTree]) -> Option<Mistake> {
    let [.., TokenTree::Ident(name), _, TokenTree::Group(group)] = tokens else {
        return None;
    };
    if name != "compile_error" {
        return None;
    }
    let text = syn::parse2::<LitStr>(group.stream()).ok()?;
    Some(Mistake {
        text: text.value(),
        from: format!("{:?}", name.span()),
        to: format!("{:?}", text.span()),
        outside_tests: false,
    })
}

/// Whether `tokens` end with `#[cfg(not(test))]`.
fn ends_with_condition(tokens: &[TokenTree]) -> bool {
    match tokens {
        [.., TokenTree::Punct(sign), TokenTree::Group(group)] => {
            let condition = group.stream().to_string().replace(' ', "");
            sign.as_char() == '#' && condition == "cfg(not(test))"
        }
        _ => false,
    }
}
