//! Where a body names its token, found in raw tokens.

use proc_macro2::{Ident, Literal, Span, TokenStream, TokenTree};
use syn::ext::IdentExt;

/// The identifiers under which `body` looks for `name`, one for each hygiene context that does.
///
/// Identifiers count wherever they stand, and so do string literals that would capture the name when used as a
/// format string. A binding made of each returned identifier is in scope of every use that was found.
pub(crate) fn uses(body: &TokenStream, name: &Ident) -> Vec<Ident> {
    let mut search = Search {
        name,
        text: name.unraw().to_string(),
        found: Vec::new(),
    };
    search.tokens(body.clone());
    search.found.into_iter().map(|(_, ident)| ident).collect()
}

struct Search<'a> {
    name: &'a Ident,
    text: String,
    found: Vec<(String, Ident)>,
}

impl Search<'_> {
    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(ident) if ident.unraw() == self.text => self.note(ident.span()),
                TokenTree::Literal(literal) if captures(&literal, &self.text) => {
                    self.note(literal.span());
                }
                _ => {}
            }
        }
    }

    fn note(&mut self, span: Span) {
        let context = context(span);
        if self.found.iter().all(|(known, _)| *known != context) {
            let mut ident = self.name.clone();
            ident.set_span(span);
            self.found.push((context, ident));
        }
    }
}

/// Tells hygiene contexts apart: a compiler's span prints as `#0 bytes(7..9)`, the context in front, and one outside of the compiler
/// has none. A span that prints otherwise is taken as a context of its own, which binds more often than needed and never too seldom.
fn context(span: Span) -> String {
    let printed = format!("{span:?}");
    match printed.split_once("bytes") {
        Some((context, _)) => context.to_owned(),
        None => printed,
    }
}

/// Whether a string literal holds `{name}` or `{name:…}`, as format strings spell a captured argument.
fn captures(literal: &Literal, name: &str) -> bool {
    let text = literal.to_string();
    let string = text.starts_with(['"', 'r']);
    string
        && text.split('{').skip(1).any(|piece| {
            let argument = piece.trim_start().strip_prefix(name).map(str::trim_start);
            argument.is_some_and(|after| after.starts_with(['}', ':']))
        })
}

#[cfg(test)]
mod tests {
    use super::uses;
    use proc_macro2::{Ident, Span, TokenStream};

    fn asks(body: &str) -> bool {
        let body: TokenStream = body
            .parse()
            .expect("the body of a test has balanced tokens");
        !uses(&body, &Ident::new("stop", Span::call_site())).is_empty()
    }

    #[test]
    fn an_identifier_asks_at_any_depth() {
        for body in [
            "{ stop }",
            "{ stop.check()?; }",
            "{ r#stop.check() }",
            "{ vec![[(|| { inner!(a, stop) })()]] }",
            "{ Job { stop } }",
        ] {
            assert!(asks(body), "{body}");
        }
    }

    #[test]
    fn a_format_string_asks() {
        for body in [
            r#"{ println!("{stop}") }"#,
            r#"{ println!("at {stop:?}") }"#,
            r#"{ println!("{ stop } {stop :>4}") }"#,
            r##"{ println!(r#""{stop:#?}" # "#) }"##,
        ] {
            assert!(asks(body), "{body}");
        }
    }

    #[test]
    fn other_words_and_literals_do_not_ask() {
        for body in [
            "{ stopped; stop_it; non_stop }",
            r#"{ println!("stop, {stopped} {0:stop} {unstop}") }"#,
            r#"{ b"{stop}"; c"{stop}"; 'x' }"#,
            "{ 1 + 2 }",
        ] {
            assert!(!asks(body), "{body}");
        }
    }

    #[test]
    fn one_context_gets_one_binding() {
        let body: TokenStream = r#"{ stop; stop; "{stop}" }"#.parse().expect("balanced");
        assert_eq!(uses(&body, &Ident::new("stop", Span::call_site())).len(), 1);
    }
}
