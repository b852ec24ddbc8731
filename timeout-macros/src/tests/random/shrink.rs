//! Reduces a failing case to as few tokens as possible.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::Case;
use super::promises::{self, Broken};

/// Removes tokens while the same promise is broken. The number of mistakes is known only for the
/// whole case, so it is dropped first.
pub(super) fn shrink(mut case: Case, mut broken: Broken) -> (Case, Broken) {
    if case.mistakes.is_some() {
        let open = Case {
            mistakes: None,
            ..case.clone()
        };
        match fails_like(&broken, &open) {
            Some(same) => (case, broken) = (open, same),
            None => return (case, broken),
        }
    }
    while let Some(smaller) = smaller(&case)
        .into_iter()
        .find_map(|smaller| Some((fails_like(&broken, &smaller)?, smaller)))
    {
        (broken, case) = smaller;
    }
    (case, broken)
}

fn fails_like(broken: &Broken, case: &Case) -> Option<Broken> {
    let error = promises::check(case).err()?;
    (error.promise == broken.promise).then_some(error)
}

fn smaller(case: &Case) -> Vec<Case> {
    let args = cuts(&case.args).into_iter().map(|args| Case {
        args,
        ..case.clone()
    });
    let items = cuts(&case.item).into_iter().map(|item| Case {
        item,
        ..case.clone()
    });
    args.chain(items).collect()
}

/// Variants of `tokens` without a half, a quarter and so on down to a single token, at any depth,
/// and without the delimiters of an invisible group.
fn cuts(tokens: &TokenStream) -> Vec<TokenStream> {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    let replaced = |from: usize, to: usize, by: TokenStream| -> TokenStream {
        let (front, back) = (tokens[..from].iter().cloned(), tokens[to..].iter().cloned());
        front.chain(by).chain(back).collect()
    };
    let mut all = Vec::new();
    let mut length = tokens.len();
    while length > 0 {
        for from in (0..tokens.len()).step_by(length) {
            let to = tokens.len().min(from + length);
            all.push(replaced(from, to, TokenStream::new()));
        }
        length /= 2;
    }
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            if group.delimiter() == Delimiter::None {
                all.push(replaced(at, at + 1, group.stream()));
            }
            for inner in cuts(&group.stream()) {
                let group = TokenTree::Group(Group::new(group.delimiter(), inner));
                all.push(replaced(at, at + 1, group.into()));
            }
        }
    }
    all
}
