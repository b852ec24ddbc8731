//! Parses each parameter of the annotated function: its kind, its attributes by their role, and its
//! form in the new signature. `bindings` binds the original pattern in the body.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{
    Attribute, FnArg, Meta, Pat, PatIdent, PatType, Receiver, ReceiverKind, Signature, Token, Type,
};

use crate::mentions::Bound;
use crate::site::{self, Site, Unseen};
use crate::types::{self, Borrow};

/// One parameter, with its attributes grouped by their role.
pub(crate) struct Param {
    /// Conditions of the parameter and of its binding.
    pub(crate) conditions: Vec<Attribute>,
    /// Lint levels of the binding, and of the parameter's name.
    pub(crate) lints: Vec<Attribute>,
    /// Everything else, which stays on the parameter.
    pub(crate) others: Vec<Attribute>,
    /// How the parameter in the signature is hidden from lints.
    unseen: Option<Unseen>,
    pub(crate) kind: Kind,
}

pub(crate) enum Kind {
    Receiver(Receiver),
    /// `name: ty` or `mut name: ty`.
    Name {
        mutability: Option<Token![mut]>,
        ident: Ident,
        ty: Box<Type>,
    },
    /// A pattern that stays in the signature, for macros that read its names. Each part is bound
    /// again.
    Parts {
        pat: Box<Pat>,
        parts: Vec<PatIdent>,
        /// The names of the parts in the signature.
        outer: Vec<Ident>,
        ty: Box<Type>,
    },
    /// Any other pattern. In the signature, the name `slot` replaces it.
    Pattern {
        slot: Ident,
        pat: Box<Pat>,
        ty: Box<Type>,
    },
    /// The caller's token: like [`Kind::Name`], with the name of the body's token.
    Token {
        mutability: Option<Token![mut]>,
        ident: Ident,
        ty: Box<Type>,
    },
}

impl Param {
    /// The parameters of `sig`, where `token` is the name of the body's token.
    pub(crate) fn all(sig: &Signature, token: &Ident, site: &Site) -> Vec<Self> {
        let split = |(index, input): (usize, &FnArg)| match input {
            FnArg::Receiver(receiver) => Self::receiver(receiver),
            FnArg::Typed(typed) => Self::typed(typed, index, token, site),
        };
        sig.inputs.iter().enumerate().map(split).collect()
    }

    fn receiver(receiver: &Receiver) -> Self {
        let mut receiver = receiver.clone();
        let attrs = std::mem::take(&mut receiver.attrs);
        let (conditions, others) = attrs
            .into_iter()
            .partition(|attr| role(attr) == Role::Condition);
        Self {
            conditions,
            lints: Vec::new(),
            others,
            unseen: None,
            kind: Kind::Receiver(receiver),
        }
    }

    fn typed(typed: &PatType, index: usize, token: &Ident, site: &Site) -> Self {
        let PatType { attrs, pat, ty, .. } = typed.clone();
        let kind = match *pat {
            Pat::Ident(PatIdent {
                by_ref: None,
                subpat: None,
                mutability,
                ident,
                ..
            }) => {
                if ident.unraw() == token.unraw() {
                    Kind::Token {
                        mutability,
                        ident,
                        ty,
                    }
                } else {
                    Kind::Name {
                        mutability,
                        ident,
                        ty,
                    }
                }
            }
            pat if site.is_read && can_be_bound_again(&pat) => {
                let parts = Bound::of(&pat);
                let (pat, outer) = in_signature(pat, site);
                Kind::Parts {
                    parts,
                    outer,
                    pat: Box::new(pat),
                    ty,
                }
            }
            pat => {
                let slot = format_ident!(
                    "__arg{index}",
                    span = Span::mixed_site().located_at(pat.span())
                );
                Kind::Pattern {
                    slot,
                    pat: Box::new(pat),
                    ty,
                }
            }
        };
        let mut param = Self {
            conditions: Vec::new(),
            lints: Vec::new(),
            others: Vec::new(),
            unseen: None,
            kind,
        };
        param.unseen = param.name().and_then(|name| site.unseen(name));
        for attr in attrs {
            match role(&attr) {
                Role::Condition => param.conditions.push(attr),
                Role::Lint => param.lints.push(attr),
                Role::Other => param.others.push(attr),
            }
        }
        param
    }

    /// The parameter's name, if it is not a pattern.
    pub(crate) fn name(&self) -> Option<&Ident> {
        match &self.kind {
            Kind::Name { ident, .. } | Kind::Token { ident, .. } => Some(ident),
            Kind::Receiver(_) | Kind::Parts { .. } | Kind::Pattern { .. } => None,
        }
    }

    /// `name` as it is in the signature.
    pub(crate) fn outer_name<'a>(&'a self, name: &'a Ident) -> &'a Ident {
        match &self.unseen {
            Some(Unseen::Name(unseen)) => unseen,
            Some(Unseen::Pattern) | None => name,
        }
    }

    /// The names that the parameter's pattern binds.
    pub(crate) fn parts(&self) -> Vec<Ident> {
        let parts = match &self.kind {
            Kind::Parts { parts, .. } => parts.clone(),
            Kind::Pattern { pat, .. } => Bound::of(pat),
            Kind::Receiver(_) | Kind::Name { .. } | Kind::Token { .. } => Vec::new(),
        };
        parts.into_iter().map(|part| part.ident).collect()
    }

    /// The pattern that a generated name replaces in the signature.
    pub(crate) fn hidden(&self) -> Option<&Pat> {
        match &self.kind {
            Kind::Pattern { pat, .. } => Some(pat),
            _ => None,
        }
    }

    /// Whether the parameter is the caller's token.
    pub(crate) fn is_token(&self) -> bool {
        matches!(self.kind, Kind::Token { .. })
    }

    /// The first borrow visible in the type of an argument that moves with the operation.
    pub(crate) fn first_borrow(&self) -> Option<Borrow> {
        match &self.kind {
            Kind::Receiver(receiver) => match &receiver.kind {
                ReceiverKind::Reference(_, Some(lifetime), _) if lifetime.ident == "static" => None,
                ReceiverKind::Reference(_, _, mutability) => Some(Borrow {
                    typed: receiver.to_token_stream(),
                    is_mut: mutability.is_some(),
                }),
                ReceiverKind::Typed(_, ty) => types::first_borrow(ty),
                _ => None,
            },
            Kind::Name { ty, .. } | Kind::Parts { ty, .. } | Kind::Pattern { ty, .. } => {
                types::first_borrow(ty)
            }
            Kind::Token { .. } => None,
        }
    }

    /// A phrase that names the owned type to take in place of a borrow.
    pub(crate) fn owned_form(&self) -> String {
        match &self.kind {
            Kind::Receiver(_) => "`self: Arc<Self>`".to_owned(),
            Kind::Name { ty, .. }
            | Kind::Parts { ty, .. }
            | Kind::Pattern { ty, .. }
            | Kind::Token { ty, .. } => types::owned_form(ty),
        }
    }
}

/// The parameter as callers see it: no `mut`, and a name in place of a pattern.
impl From<&Param> for FnArg {
    fn from(param: &Param) -> Self {
        // Only one `expect` can be fulfilled, and the binding has it.
        let levels = param
            .lints
            .iter()
            .filter(|attr| !attr.path().is_ident("expect"));
        let attrs = param
            .conditions
            .iter()
            .chain(levels)
            .chain(&param.others)
            .cloned()
            .collect();
        let (ident, ty) = match &param.kind {
            Kind::Receiver(receiver) => {
                return Self::Receiver(Receiver {
                    attrs,
                    ..receiver.clone()
                });
            }
            Kind::Parts { pat, ty, .. } => {
                return Self::Typed(PatType {
                    attrs,
                    pat: pat.clone(),
                    colon_token: Token![:](ty.span()),
                    ty: ty.clone(),
                });
            }
            Kind::Pattern { slot, ty, .. } => (slot, ty),
            Kind::Name { ident, ty, .. } | Kind::Token { ident, ty, .. } => {
                (param.outer_name(ident), ty)
            }
        };
        let pat = site::pattern(ident, param.unseen.as_ref());
        let colon_token = Token![:](ty.span());
        Self::Typed(PatType {
            attrs,
            pat: Box::new(pat),
            colon_token,
            ty: ty.clone(),
        })
    }
}

/// Whether every part of the pattern can be moved into another binding: no part borrows, and all
/// are visible.
fn can_be_bound_again(pat: &Pat) -> bool {
    struct Search(bool);

    impl Visit<'_> for Search {
        fn visit_pat(&mut self, pat: &Pat) {
            match pat {
                Pat::Macro(_) | Pat::Verbatim(_) => self.0 = true,
                pat => visit::visit_pat(self, pat),
            }
        }

        fn visit_pat_ident(&mut self, part: &PatIdent) {
            self.0 |= part.by_ref.is_some();
            visit::visit_pat_ident(self, part);
        }
    }

    let mut search = Search(false);
    search.visit_pat(pat);
    !search.0
}

/// The pattern for the signature, and the names of its parts there. It has no `mut`, and its names
/// are hidden from lints.
fn in_signature(mut pat: Pat, site: &Site) -> (Pat, Vec<Ident>) {
    struct Change<'a> {
        site: &'a Site,
        names: Vec<Ident>,
    }

    impl VisitMut for Change<'_> {
        fn visit_pat_ident_mut(&mut self, part: &mut PatIdent) {
            part.mutability = None;
            if let Some(Unseen::Name(unseen)) = self.site.unseen(&part.ident) {
                part.ident = unseen;
            }
            self.names.push(part.ident.clone());
            visit_mut::visit_pat_ident_mut(self, part);
        }
    }

    let mut change = Change {
        site,
        names: Vec::new(),
    };
    change.visit_pat_mut(&mut pat);
    (pat, change.names)
}

#[derive(PartialEq, Eq)]
enum Role {
    Condition,
    Lint,
    Other,
}

fn role(attr: &Attribute) -> Role {
    match &attr.meta {
        Meta::List(list) if list.path.is_ident("cfg_attr") => {
            // The attributes after the condition decide. A list that contains `cfg` is needed in
            // both places.
            let roles = attribute_words(list.tokens.clone())
                .map(|word| role_of_word(&word))
                .collect::<Vec<_>>();
            if roles.contains(&Role::Condition) {
                Role::Condition
            } else if roles.contains(&Role::Lint) {
                Role::Lint
            } else {
                Role::Other
            }
        }
        meta => meta.path().get_ident().map_or(Role::Other, role_of_word),
    }
}

fn role_of_word(word: &Ident) -> Role {
    match word.to_string().as_str() {
        "cfg" => Role::Condition,
        "allow" | "expect" | "warn" | "deny" | "forbid" => Role::Lint,
        _ => Role::Other,
    }
}

/// The words after the first comma of `condition, attribute, …`.
pub(crate) fn attribute_words(tokens: TokenStream) -> impl Iterator<Item = Ident> {
    let is_comma =
        |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',');
    tokens
        .into_iter()
        .skip_while(move |token| !is_comma(token))
        .filter_map(|token| match token {
            TokenTree::Ident(ident) => Some(ident),
            _ => None,
        })
}
