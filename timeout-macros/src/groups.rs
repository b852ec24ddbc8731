//! Invisible groups, in which fragments of a `macro_rules!` arrive.
//!
//! The compiler respects an invisible group that it has made itself. It ignores one that an
//! attribute has taken apart and put together again, so `$limit * 2` would become `a + b * 2`.
//! Groups inside other delimiters are passed on untouched and stay what they are. All others get
//! parentheses here, where an operator could tear their tokens apart.

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote_spanned};
use syn::token::Paren;
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, ExprParen, PathArguments, Signature, Token, Type, TypeParen};

/// `tokens` with the same meaning after the compiler has dropped the invisible groups around and
/// between them.
pub(crate) fn opened(tokens: TokenStream) -> TokenStream {
    tokens.into_iter().map(part).collect()
}

/// `tokens` as they can stand behind an operator.
pub(crate) fn operand(tokens: &TokenStream) -> TokenStream {
    let mut place = tokens.clone().into_iter().map(|token| token.span());
    let here = mixed(place.next());
    match syn::parse2::<Expr>(tokens.clone()) {
        Ok(expr) if !is_whole(&expr) => quote_spanned!(here=> (#tokens)),
        _ => tokens.clone(),
    }
}

/// Puts parentheses into the types and array lengths of `sig`, where an operator could tear a
/// fragment apart.
pub(crate) fn open_signature(sig: &mut Signature) {
    Opening.visit_signature_mut(sig);
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
        // An option and its value, as `$option:meta`.
        Ok(Expr::Assign(_)) => return tokens,
        // In front of parentheses, `self.make` would become a method.
        Ok(Expr::Field(_)) => return parenthesized(group, tokens),
        Ok(expr) if is_whole(&expr) => return tokens,
        Ok(_) => return parenthesized(group, tokens),
        Err(_) => {}
    }
    match syn::parse2::<Type>(tokens.clone()) {
        // `Vec<u8>` in front of `::new()` or of a call.
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

/// Outside the view of lints about parentheses.
fn mixed(place: Option<Span>) -> Span {
    let here = Span::mixed_site();
    place.map_or(here, |place| here.located_at(place))
}

/// Whether no operator beside `expr` can take a part of it.
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

/// Whether `ty` has bounds that a `&` in front would not take all of.
fn has_bounds(ty: &Type) -> bool {
    match ty {
        Type::TraitObject(object) => object.bounds.len() > 1,
        Type::ImplTrait(hidden) => hidden.bounds.len() > 1,
        _ => false,
    }
}

struct Opening;

impl VisitMut for Opening {
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
