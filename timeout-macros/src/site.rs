//! Describes the place of the attribute, and hides parameters from lints there.
//!
//! The operation binds each argument again under its own name. Clippy would report that as
//! shadowing, and an `allow` in the expansion is an error if the user forbids the lint. So the
//! pattern in the signature gets the span of a macro, which such lints skip. The binding in the
//! operation keeps the user's span, so that a lint about an unused argument points there.

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use syn::{Pat, PatIdent, PatWild, Token};

use crate::token;

/// The place of the attribute.
#[derive(Default)]
pub(crate) struct Site {
    /// Whether a macro reads the signature after this one, and expects plain names and patterns in
    /// it.
    pub(crate) is_read: bool,
    /// Whether the compiler expands the attribute, and runs its lints. An editor does not run them,
    /// and gets names as typed.
    is_compiled: bool,
    /// The first token of the attribute, if it is typed there and does not come from a
    /// `macro_rules!`. A name with the same hygiene keeps its meaning with the span of the
    /// attribute.
    begin: Option<Span>,
}

/// How a parameter's pattern is hidden from lints.
pub(crate) enum Unseen {
    /// By the span of its name.
    Name(Ident),
    /// By the span of the whole pattern, `name @ _`, if the name would change its meaning with that
    /// span.
    Pattern,
}

impl Site {
    /// The place of an attribute whose arguments start with `begin`.
    pub(crate) fn of(begin: Option<TokenTree>, is_read: bool) -> Self {
        let text = Span::call_site().source_text();
        let begin = begin.filter(|begin| {
            let text = text.as_deref().and_then(|text| text.parse().ok());
            text.is_some_and(|text| is_typed(begin, text))
        });
        Self {
            is_read,
            is_compiled: text.is_some(),
            begin: begin.map(|begin| begin.span()),
        }
    }

    /// How a parameter with this name is hidden from lints. `None` if it stays visible.
    pub(crate) fn unseen(&self, name: &Ident) -> Option<Unseen> {
        let shares = |begin| token::shares_context(name.span(), begin);
        if self.begin.is_some_and(shares) {
            let mut unseen = name.clone();
            unseen.set_span(Span::call_site().located_at(name.span()));
            return Some(Unseen::Name(unseen));
        }
        let is_seen = self.is_compiled && !self.is_read && is_outside_macros(name.span());
        is_seen.then_some(Unseen::Pattern)
    }
}

/// A parameter's pattern, hidden from lints if `unseen` is given.
pub(crate) fn pattern(name: &Ident, unseen: Option<&Unseen>) -> Pat {
    let subpat = matches!(unseen, Some(Unseen::Pattern)).then(|| {
        let here = Span::mixed_site().located_at(name.span());
        let any = Pat::Wild(PatWild {
            attrs: Vec::new(),
            underscore_token: Token![_](here),
        });
        (Token![@](here), Box::new(any))
    });
    Pat::Ident(PatIdent {
        attrs: Vec::new(),
        by_ref: None,
        mutability: None,
        ident: name.clone(),
        subpat,
    })
}

/// Whether the compiler prints the span as one outside all macros. Lints about shadowing skip all
/// other spans anyway, and Clippy finds `name @ _` redundant there.
fn is_outside_macros(span: Span) -> bool {
    format!("{span:?}").starts_with("#0 ")
}

/// Whether `begin`, a word or a literal, is the first token in parentheses in `text`. A fragment
/// would be a `$` there.
fn is_typed(begin: &TokenTree, text: TokenStream) -> bool {
    text.into_iter().any(|token| {
        let TokenTree::Group(group) = token else {
            return false;
        };
        let is_first = match (group.stream().into_iter().next(), begin) {
            (Some(TokenTree::Ident(first)), TokenTree::Ident(begin)) => first == *begin,
            (Some(TokenTree::Literal(first)), TokenTree::Literal(begin)) => {
                first.to_string() == begin.to_string()
            }
            _ => false,
        };
        (is_first && group.delimiter() == Delimiter::Parenthesis) || is_typed(begin, group.stream())
    })
}

#[cfg(test)]
mod tests {
    use super::is_typed;
    use proc_macro2::{Ident, Literal, Span};

    #[test]
    fn a_token_is_typed_if_it_starts_the_arguments() {
        let word = Ident::new("ms", Span::call_site()).into();
        let literal = Literal::string("5ms").into();
        for (begin, text, expected) in [
            (&word, "#[timeout(ms = 5)]", true),
            (&word, "#[rt::timeout(ms = $ms)]", true),
            (&word, "#[cfg_attr(all(), timeout(ms = 5))]", true),
            (&word, "#[timeout($ms = 5)]", false),
            (&word, "#[timeout($($args)*)]", false),
            (&word, "#[timeout(secs = 5, ms = 5)]", false),
            (&word, "#[$timeout]", false),
            (&literal, "#[timeout(\"5ms\", cancel = false)]", true),
            (&literal, "#[timeout($limit)]", false),
            (&literal, "#[timeout(\"6ms\")]", false),
        ] {
            let text = text.parse().expect("tokens");
            assert_eq!(is_typed(begin, text), expected);
        }
    }
}
