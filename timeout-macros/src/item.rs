//! Parses the signature of the annotated item, and keeps its body as raw tokens.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, LitStr, Signature, Token, Visibility};

use crate::errors::Errors;
use crate::groups;
use crate::token;

/// A function with a body.
pub(crate) struct Item {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) body: Body,
}

/// A body in braces, or the word that replaces it in an editor. Only its inner attributes and its
/// names are read.
pub(crate) struct Body {
    /// The attributes at the top of the body, `#![…]`.
    pub(crate) attrs: TokenStream,
    /// The braces and the rest of the body, inside the invisible groups around them.
    pub(crate) block: TokenStream,
    /// The span of the braces.
    pub(crate) braces: Span,
}

impl Item {
    /// Parses `typed`. Returns `None` after a mistake that leaves no function.
    pub(crate) fn parse(typed: &TokenStream, errors: &mut Errors) -> Option<Self> {
        let parsed = item.parse2(visible(typed.clone()));
        parsed.map_err(|error| errors.push(error)).ok()
    }

    /// The identifiers with which the body mentions its token, one for each hygiene context.
    pub(crate) fn token_uses(&self, name: &Ident) -> Vec<Ident> {
        token::uses(&self.body.block, name)
    }
}

fn item(input: ParseStream<'_>) -> syn::Result<Item> {
    let attrs = input.call(Attribute::parse_outer)?;
    let vis = input.parse()?;
    if !is_function(input) {
        return Err(input.error("`#[timeout]` takes a function"));
    }
    let mut sig = input.parse()?;
    groups::open_signature(&mut sig);
    if input.peek(Token![;]) {
        return Err(input
            .error("a method without a body cannot be timed out; annotate its implementations"));
    }
    let body = Body::split(input.parse()?)?;
    if !input.is_empty() {
        return Err(input.error("expected nothing after the body"));
    }
    Ok(Item {
        attrs,
        vis,
        sig,
        body,
    })
}

/// Whether the input continues with the qualifiers of a function and `fn`.
fn is_function(input: ParseStream<'_>) -> bool {
    let ahead = input.fork();
    while let Ok(word) = ahead.call(Ident::parse_any) {
        match word.to_string().as_str() {
            "fn" => return true,
            "const" | "async" | "unsafe" => {}
            "extern" => {
                let _: syn::Result<Option<LitStr>> = ahead.parse();
            }
            _ => return false,
        }
    }
    false
}

impl Body {
    /// The tokens between the braces, without the inner attributes.
    pub(crate) fn inside(&self) -> TokenStream {
        match only(visible(self.block.clone())) {
            Some(TokenTree::Group(braces)) => braces.stream(),
            _ => TokenStream::new(),
        }
    }

    fn split(token: TokenTree) -> syn::Result<Self> {
        let group = match token {
            TokenTree::Group(group) => group,
            TokenTree::Ident(ident) if token::is_fixup(&ident) => return Ok(Self::replaced(ident)),
            token => return Err(syn::Error::new_spanned(token, "expected a body")),
        };
        match group.delimiter() {
            Delimiter::Brace => Ok(Self::of_braces(&group)),
            // A body from a `macro_rules!`, passed as `$body:block`.
            Delimiter::None => {
                let inner = only(group.stream())
                    .ok_or_else(|| syn::Error::new(group.span(), "expected a body"))?;
                let mut body = Self::split(inner)?;
                body.block = with_tokens(&group, body.block).into_token_stream();
                Ok(body)
            }
            _ => Err(syn::Error::new(group.span_open(), "expected a body")),
        }
    }

    /// A body that an editor replaced by `fixup`. No other token may have its span, or the editor
    /// would restore the body there too.
    fn replaced(fixup: Ident) -> Self {
        Self {
            attrs: TokenStream::new(),
            block: fixup.into_token_stream(),
            braces: Span::call_site(),
        }
    }

    fn of_braces(group: &Group) -> Self {
        let (attrs, rest) = split_attributes(group.stream());
        let block = if attrs.is_empty() {
            group.clone()
        } else {
            with_tokens(group, groups::opened(rest))
        };
        Self {
            attrs,
            block: block.into_token_stream(),
            braces: group.span(),
        }
    }
}

/// Splits the inner attributes, each `#`, `!` and a bracketed group, from the front of `tokens`.
fn split_attributes(tokens: TokenStream) -> (TokenStream, TokenStream) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is_attribute = |part: &[TokenTree]| match part {
        [
            TokenTree::Punct(hash),
            TokenTree::Punct(bang),
            TokenTree::Group(group),
        ] => {
            hash.as_char() == '#'
                && bang.as_char() == '!'
                && group.delimiter() == Delimiter::Bracket
        }
        _ => false,
    };
    let count = tokens
        .chunks(3)
        .take_while(|part| is_attribute(part))
        .count();
    let (attrs, rest) = tokens.split_at(3 * count);
    (quote!(#(#attrs)*), quote!(#(#rest)*))
}

/// `group` with other tokens inside, at the same span.
fn with_tokens(group: &Group, tokens: TokenStream) -> Group {
    let mut new = Group::new(group.delimiter(), tokens);
    new.set_span(group.span());
    new
}

/// The tokens of an item, without the invisible groups around them. An item from a `macro_rules!`,
/// passed as `$item:item`, has such a group.
fn visible(tokens: TokenStream) -> TokenStream {
    match only(tokens.clone()) {
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::None => {
            visible(group.stream())
        }
        _ => tokens,
    }
}

/// The only token in `tokens`, if there is exactly one.
fn only(tokens: TokenStream) -> Option<TokenTree> {
    let mut tokens = tokens.into_iter();
    let token = tokens.next()?;
    tokens.next().is_none().then_some(token)
}
