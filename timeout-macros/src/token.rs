//! Finds the mentions of the token in the raw tokens of a body.

use std::fmt::Debug;

use proc_macro2::{Ident, Literal, Span, TokenStream, TokenTree};
use syn::ext::IdentExt;

/// The identifiers with which `body` mentions `name`, one for each hygiene context.
///
/// Identifiers count anywhere, and so do string literals that would capture the name as a format
/// string. A binding made of each returned identifier is in scope of every mention that was found.
pub(crate) fn uses(body: &TokenStream, name: &Ident) -> Vec<Ident> {
    let mut search = Search {
        name,
        text: name.unraw().to_string(),
        found: Vec::new(),
        is_hidden: false,
    };
    search.tokens(body.clone());
    if search.is_hidden {
        search.note(Span::call_site());
    }
    search.found
}

/// Whether `ident` replaces code that rust-analyzer cannot parse while it is typed. In the
/// expansion, the editor puts the code back in place of this identifier.
pub(crate) fn is_fixup(ident: &Ident) -> bool {
    ident == "__ra_fixup"
}

/// `typed` if it has the same meaning as `name`, else `name`. An editor renames a binding together
/// with the identifier that the binding is made of.
pub(crate) fn tied(name: Ident, typed: &Ident) -> Ident {
    if shares_context(name.span(), typed.span()) {
        typed.clone()
    } else {
        name
    }
}

struct Search<'a> {
    name: &'a Ident,
    text: String,
    found: Vec<Ident>,
    /// An editor replaced a part of the body, which may mention the name.
    is_hidden: bool,
}

impl Search<'_> {
    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(ident) if ident.unraw() == self.text => self.note(ident.span()),
                TokenTree::Ident(ident) if is_fixup(&ident) => self.is_hidden = true,
                TokenTree::Literal(literal) if captures(&literal, &self.text) => {
                    self.note(literal.span());
                }
                _ => {}
            }
        }
    }

    fn note(&mut self, span: Span) {
        let is_known = self
            .found
            .iter()
            .any(|known| share_context(span, known.span(), |one, other| one.located_at(other)));
        if !is_known {
            let mut ident = self.name.clone();
            ident.set_span(span);
            self.found.push(ident);
        }
    }
}

/// Whether names at these two spans have the same meaning.
pub(crate) fn shares_context(one: Span, other: Span) -> bool {
    share_context(one, other, |one, other| one.located_at(other))
}

/// Whether names at these two spans have the same meaning: the first span, moved to the location of
/// the second, equals the second.
///
/// The compiler and editors have no comparison of spans, and print spans in their own formats. The
/// printed texts are only compared here, never parsed.
fn share_context<S: Copy + Debug>(one: S, other: S, located_at: impl Fn(S, S) -> S) -> bool {
    format!("{:?}", located_at(one, other)) == format!("{other:?}")
}

/// Whether a string literal holds `{name}` or `{name:…}`, the form of a captured argument in a
/// format string.
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
    use super::{share_context, tied, uses};
    use proc_macro2::{Ident, Span, TokenStream};
    use std::fmt::{self, Debug, Formatter};

    fn is_mentioned(body: &str) -> bool {
        let body: TokenStream = body.parse().expect("the body has balanced tokens");
        !uses(&body, &Ident::new("stop", Span::call_site())).is_empty()
    }

    #[test]
    fn an_identifier_is_a_mention_at_any_depth() {
        for body in [
            "{ stop }",
            "{ stop.check()?; }",
            "{ r#stop.check() }",
            "{ vec![[(|| { inner!(a, stop) })()]] }",
            "{ Job { stop } }",
        ] {
            assert!(is_mentioned(body), "{body}");
        }
    }

    #[test]
    fn a_captured_argument_of_a_format_string_is_a_mention() {
        for body in [
            r#"{ println!("{stop}") }"#,
            r#"{ println!("at {stop:?}") }"#,
            r#"{ println!("{ stop } {stop :>4}") }"#,
            r##"{ println!(r#""{stop:#?}" # "#) }"##,
        ] {
            assert!(is_mentioned(body), "{body}");
        }
    }

    #[test]
    fn other_words_and_literals_are_no_mentions() {
        for body in [
            "{ stopped; stop_it; non_stop }",
            r#"{ println!("stop, {stopped} {0:stop} {unstop}") }"#,
            r#"{ b"{stop}"; c"{stop}"; 'x' }"#,
            "{ 1 + 2 }",
        ] {
            assert!(!is_mentioned(body), "{body}");
        }
    }

    #[test]
    fn one_hygiene_context_gets_one_binding() {
        let body: TokenStream = r#"{ stop; stop; "{stop}" }"#
            .parse()
            .expect("the tokens are balanced");
        assert_eq!(uses(&body, &Ident::new("stop", Span::call_site())).len(), 1);
    }
    /// A span in the compiler's format: a hygiene context, and where the span begins and ends.
    #[derive(Clone, Copy)]
    struct Compiler(u32, [u32; 2]);

    impl Debug for Compiler {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            let Self(context, [begin, end]) = self;
            write!(f, "#{context} bytes({begin}..{end})")
        }
    }

    /// A span in the format of rust-analyzer.
    #[derive(Clone, Copy)]
    struct Editor(u32, [u32; 2]);

    impl Debug for Editor {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            let Self(context, [begin, end]) = self;
            write!(
                f,
                "SpanData {{ range: {begin}..{end}, anchor: SpanAnchor(EditionedFileId(0, Edition2024), \
                 ErasedFileAstId(Fn, index: 1)), ctx: SyntaxContext({context}) }}"
            )
        }
    }

    // In an editor, each use of the token counted as a context of its own, because editors print
    // spans in another format than the compiler.
    #[test]
    fn hygiene_contexts_are_distinguished_in_every_format() {
        fn check<S: Copy + Debug>(span: fn(u32, [u32; 2]) -> S, located_at: fn(S, S) -> S) {
            let places = [[7, 9], [7, 11], [70, 72]];
            for (one, other) in places
                .iter()
                .flat_map(|one| places.map(|other| (*one, other)))
            {
                for (context, is_shared) in [(3, true), (4, false), (33, false)] {
                    let (one, other) = (span(3, one), span(context, other));
                    let shared = share_context(one, other, located_at);
                    assert_eq!(shared, is_shared, "{one:?} and {other:?}");
                }
            }
        }
        check(Compiler, |one, other| Compiler(one.0, other.1));
        check(Editor, |one, other| Editor(one.0, other.1));
    }

    // An editor replaces each token that it renames. If the name in the attribute was not the
    // binding, renaming it broke the body.
    #[test]
    fn the_name_in_the_attribute_is_the_binding() {
        let tokens: TokenStream = "stop { stop; \"{stop}\" }"
            .parse()
            .expect("the tokens are balanced");
        let mut tokens = tokens.into_iter();
        let Some(proc_macro2::TokenTree::Ident(name)) = tokens.next() else {
            panic!("a name comes first");
        };
        let found = uses(&tokens.collect(), &name).into_iter();
        let found = found.map(|found| tied(found, &name));
        let places: Vec<_> = found.map(|found| found.span().byte_range()).collect();
        assert_eq!(places, [name.span().byte_range()]);
    }
}
