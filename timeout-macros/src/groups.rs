//! Keeps the fragments of a `macro_rules!` together, which arrive in invisible groups.
//!
//! The compiler respects an invisible group that it has made itself. It ignores one that an
//! attribute has taken apart and rebuilt, so `$limit * 2` would become `a + b * 2`. Groups inside
//! other delimiters pass through untouched and stay intact. All other groups get parentheses here
//! if an operator could split their tokens.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::token::Paren;
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, ExprParen, PathArguments, Signature, Token, Type, TypeParen};

/// `tokens` with a meaning that does not change when the compiler drops the invisible groups around
/// and between them.
pub(crate) fn opened(tokens: TokenStream) -> TokenStream {
    tokens.into_iter().map(part).collect()
}

/// `tokens` in a form that can follow a prefix operator.
pub(crate) fn operand(tokens: &TokenStream) -> TokenStream {
    let mut place = tokens.clone().into_iter().map(|token| token.span());
    let here = mixed(place.next());
    match syn::parse2::<Expr>(tokens.clone()) {
        Ok(expr) if !is_whole(&expr) => quote_spanned!(here=> (#tokens)),
        _ => tokens.clone(),
    }
}

/// Adds parentheses to the types and array lengths of `sig` where an operator could split a
/// fragment.
pub(crate) fn open_signature(sig: &mut Signature) {
    OpenGroups.visit_signature_mut(sig);
}

fn part(token: TokenTree) -> TokenStream {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => fragment(&group),
        token => token.into(),
    }
}

/// One fragment among other tokens.
fn fragment(group: &Group) -> TokenStream {
    let tokens = opened(group.stream());
    if tokens.clone().into_iter().nth(1).is_none() {
        return tokens;
    }
    match syn::parse2::<Expr>(tokens.clone()) {
        // An option with its value, passed as `$option:meta`.
        Ok(Expr::Assign(_)) => return tokens,
        // Before parentheses, `self.make` would become a method.
        Ok(Expr::Field(_)) => return parenthesized(group, tokens),
        Ok(expr) if is_whole(&expr) => return tokens,
        Ok(_) => return parenthesized(group, tokens),
        Err(_) => {}
    }
    match syn::parse2::<Type>(tokens.clone()) {
        // `Vec<u8>` before `::new()` or before a call.
        Ok(Type::Path(mut path)) => {
            for segment in &mut path.path.segments {
                if let PathArguments::AngleBracketed(arguments) = &mut segment.arguments {
                    let here = arguments.lt_token.spans[0];
                    arguments.colon2_token.get_or_insert(Token![::](here));
                }
            }
            path.into_token_stream()
        }
        Ok(ty) if has_bounds(&ty) => parenthesized(group, tokens),
        _ => tokens,
    }
}

fn parenthesized(group: &Group, tokens: TokenStream) -> TokenStream {
    let mut parentheses = Group::new(Delimiter::Parenthesis, tokens);
    parentheses.set_span(mixed(Some(group.span())));
    TokenTree::Group(parentheses).into()
}

/// A span that lints about parentheses ignore.
fn mixed(place: Option<Span>) -> Span {
    let here = Span::mixed_site();
    place.map_or(here, |place| here.located_at(place))
}

/// Whether no operator next to `expr` can take a part of it.
fn is_whole(expr: &Expr) -> bool {
    match expr {
        Expr::Group(group) => is_whole(&group.expr),
        Expr::Array(_)
        | Expr::Async(_)
        | Expr::Await(_)
        | Expr::Block(_)
        | Expr::Call(_)
        | Expr::Const(_)
        | Expr::Field(_)
        | Expr::ForLoop(_)
        | Expr::If(_)
        | Expr::Index(_)
        | Expr::Let(_)
        | Expr::Lit(_)
        | Expr::Loop(_)
        | Expr::Macro(_)
        | Expr::Match(_)
        | Expr::MethodCall(_)
        | Expr::Paren(_)
        | Expr::Path(_)
        | Expr::Try(_)
        | Expr::Tuple(_)
        | Expr::Unsafe(_)
        | Expr::While(_) => true,
        _ => false,
    }
}

/// Whether `ty` has several bounds, so that a `&` before it would not cover all of them.
fn has_bounds(ty: &Type) -> bool {
    match ty {
        Type::TraitObject(object) => object.bounds.len() > 1,
        Type::ImplTrait(hidden) => hidden.bounds.len() > 1,
        _ => false,
    }
}

struct OpenGroups;

impl VisitMut for OpenGroups {
    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        visit_mut::visit_expr_mut(self, expr);
        let Expr::Group(group) = expr else {
            return;
        };
        if !is_whole(&group.expr) {
            *expr = Expr::Paren(ExprParen {
                attrs: Vec::new(),
                paren_token: Paren(mixed(Some(group.group_token.span))),
                expr: group.expr.clone(),
            });
        }
    }

    fn visit_type_mut(&mut self, ty: &mut Type) {
        visit_mut::visit_type_mut(self, ty);
        let Type::Group(group) = ty else {
            return;
        };
        if has_bounds(&group.elem) {
            *ty = Type::Paren(TypeParen {
                attrs: Vec::new(),
                paren_token: Paren(mixed(Some(group.group_token.span))),
                elem: group.elem.clone(),
            });
        }
    }
}
