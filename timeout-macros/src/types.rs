//! Reads the syntax of types: borrows, `impl Trait`, futures and errors.

use proc_macro2::{Ident, TokenStream};
use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::visit_mut::{self, VisitMut};
use syn::{
    BoundLifetimes, Expr, GenericArgument, GenericParam, Generics, Lifetime,
    ParenthesizedGenericArguments, PathArguments, Token, TraitBound, Type, TypeFnPtr,
    TypeImplTrait, TypeInfer, TypeParamBound, TypeReference, TypeTraitObject,
};

/// A borrow as typed.
pub(crate) struct Borrow {
    pub(crate) typed: TokenStream,
    /// Whether it is `&mut`.
    pub(crate) is_mut: bool,
}

/// The first borrow visible in `ty`: a reference or a lifetime, other than `'static`.
///
/// A value does not hold the arguments and results of its function types, so borrows in them do not
/// count. Examples are `fn(&str)` and `impl Fn(&str)`.
pub(crate) fn first_borrow(ty: &Type) -> Option<Borrow> {
    let mut search = Borrows {
        found: None,
        functions: 0,
        bound: Vec::new(),
    };
    search.visit_type(ty);
    search.found
}

struct Borrows {
    found: Option<Borrow>,
    /// The number of function types around the part at hand.
    functions: usize,
    /// The lifetimes that a `for<…>` around the part at hand declares.
    bound: Vec<Lifetime>,
}

impl Borrows {
    fn note(&mut self, part: &impl ToTokens, is_mut: bool) {
        self.found.get_or_insert_with(|| Borrow {
            typed: part.to_token_stream(),
            is_mut,
        });
    }

    fn holds(&self, lifetime: &Lifetime) -> bool {
        let elided_in_function = lifetime.ident == "_" && self.functions > 0;
        lifetime.ident != "static" && !elided_in_function && !self.bound.contains(lifetime)
    }

    fn within(&mut self, lifetimes: Option<&BoundLifetimes>, visit: impl FnOnce(&mut Self)) {
        let outer = self.bound.len();
        for parameter in lifetimes.iter().flat_map(|bound| &bound.lifetimes) {
            if let GenericParam::Lifetime(parameter) = parameter {
                self.bound.push(parameter.lifetime.clone());
            }
        }
        visit(self);
        self.bound.truncate(outer);
    }
}

impl Visit<'_> for Borrows {
    fn visit_type_reference(&mut self, reference: &TypeReference) {
        let holds = match &reference.lifetime {
            Some(lifetime) => self.holds(lifetime),
            None => self.functions == 0,
        };
        if holds {
            self.note(reference, reference.mutability.is_some());
        }
        self.visit_type(&reference.elem);
    }

    fn visit_lifetime(&mut self, lifetime: &Lifetime) {
        if self.holds(lifetime) {
            self.note(lifetime, false);
        }
    }

    fn visit_type_fn_ptr(&mut self, function: &TypeFnPtr) {
        self.functions += 1;
        self.within(function.lifetimes.as_ref(), |search| {
            for input in &function.inputs {
                search.visit_type(&input.ty);
            }
            search.visit_return_type(&function.output);
        });
        self.functions -= 1;
    }

    fn visit_parenthesized_generic_arguments(&mut self, arguments: &ParenthesizedGenericArguments) {
        self.functions += 1;
        visit::visit_parenthesized_generic_arguments(self, arguments);
        self.functions -= 1;
    }

    fn visit_trait_bound(&mut self, bound: &TraitBound) {
        self.within(bound.lifetimes.as_ref(), |search| {
            search.visit_path(&bound.path);
        });
    }

    // The length of an array holds no borrow.
    fn visit_expr(&mut self, _: &Expr) {}
}

/// A phrase that names the owned type to take in place of the borrow `ty`.
pub(crate) fn owned_form(ty: &Type) -> String {
    let Type::Reference(TypeReference { elem, .. }) = visible(ty) else {
        return "an owned value".to_owned();
    };
    match visible(elem) {
        Type::Path(path) if path.path.is_ident("str") => "`String`".to_owned(),
        Type::Slice(slice) => format!("`Vec<{}>`", shown(&slice.elem)),
        elem if first_borrow(elem).is_some() => "an owned value".to_owned(),
        elem => format!("`Arc<{}>`", shown(elem)),
    }
}

/// `ty` without the invisible groups and parentheses around it.
pub(crate) fn visible(mut ty: &Type) -> &Type {
    loop {
        ty = match ty {
            Type::Group(group) => &group.elem,
            Type::Paren(paren) => &paren.elem,
            _ => return ty,
        }
    }
}

/// `ty` as text, without the spaces that printed tokens have around punctuation.
fn shown(ty: &Type) -> String {
    let printed = ty.to_token_stream().to_string();
    [
        (" < ", "<"),
        (" >", ">"),
        (" :: ", "::"),
        (" ,", ","),
        ("& ", "&"),
        (" ;", ";"),
    ]
    .iter()
    .fold(printed, |text, (spaced, tight)| text.replace(spaced, tight))
}

/// Whether `ty` is one of the type parameters in `generics`, or an `impl Trait`.
pub(crate) fn is_generic(ty: &Type, generics: &Generics) -> bool {
    match visible(ty) {
        Type::ImplTrait(_) => true,
        Type::Path(path) => generics
            .type_params()
            .any(|param| path.path.is_ident(&param.ident)),
        _ => false,
    }
}

/// The first `dyn Error` in `ty` without `Send`. Other traits may have `Send` as a supertrait.
pub(crate) fn first_unsent_error(ty: &Type) -> Option<&TypeTraitObject> {
    let mut search = UnsentErrors(None);
    search.visit_type(ty);
    search.0
}

struct UnsentErrors<'a>(Option<&'a TypeTraitObject>);

impl<'a> Visit<'a> for UnsentErrors<'a> {
    fn visit_type_trait_object(&mut self, object: &'a TypeTraitObject) {
        let is = |bound: &TypeParamBound, name: &str| named(bound).is_some_and(|is| is == name);
        let is_error = object.bounds.iter().any(|bound| is(bound, "Error"));
        if is_error && !object.bounds.iter().any(|bound| is(bound, "Send")) {
            self.0.get_or_insert(object);
        }
    }
}

/// The last segment of a trait's path.
fn named(bound: &TypeParamBound) -> Option<&Ident> {
    match bound {
        TypeParamBound::Trait(bound) => Some(&bound.path.segments.last()?.ident),
        _ => None,
    }
}

/// Whether `ty` is written as `()`.
pub(crate) fn is_unit(ty: &Type) -> bool {
    matches!(visible(ty), Type::Tuple(tuple) if tuple.elems.is_empty())
}

/// Whether `ty` may be a future, judged by its syntax.
pub(crate) fn may_be_a_future(ty: &Type) -> bool {
    match visible(ty) {
        Type::Path(path) => {
            let name = path.path.segments.last().map(|segment| &segment.ident);
            !name.is_some_and(|name| name == "Result" || name == "Option")
        }
        Type::ImplTrait(_) | Type::Infer(_) | Type::Macro(_) => true,
        _ => false,
    }
}

/// Whether `ty` is a path, which may be an alias of any type.
pub(crate) fn is_path(ty: &Type) -> bool {
    matches!(visible(ty), Type::Path(_))
}

/// Whether there is an `impl Trait` in `ty`.
pub(crate) fn is_hidden(ty: &Type) -> bool {
    let mut search = Hidden(false);
    search.visit_type(ty);
    search.0
}

struct Hidden(bool);

impl Visit<'_> for Hidden {
    fn visit_type_impl_trait(&mut self, _: &TypeImplTrait) {
        self.0 = true;
    }
}

/// The `impl Future` that `ty` is, or that is the first argument of a `Result`, an `Option` or a
/// box: the future that a caller awaits.
pub(crate) fn returned_future(ty: &Type) -> Option<&TypeImplTrait> {
    match visible(ty) {
        Type::ImplTrait(hidden) => hidden.bounds.iter().any(is_future).then_some(hidden),
        Type::Path(path) => {
            let holder = path.path.segments.last()?;
            let holds = ["Result", "Option", "Box", "Pin"]
                .iter()
                .any(|name| holder.ident == name);
            let PathArguments::AngleBracketed(arguments) = &holder.arguments else {
                return None;
            };
            match arguments.args.first()? {
                GenericArgument::Type(ty) if holds => returned_future(ty),
                _ => None,
            }
        }
        _ => None,
    }
}

fn is_future(bound: &TypeParamBound) -> bool {
    named(bound).is_some_and(|name| name == "Future" || name == "IntoFuture")
}

/// `ty` as it can be written inside the body: with `_` for each `impl Trait`.
pub(crate) fn inferred(ty: &Type) -> Type {
    let mut ty = ty.clone();
    Inferred.visit_type_mut(&mut ty);
    ty
}

struct Inferred;

impl VisitMut for Inferred {
    fn visit_type_mut(&mut self, ty: &mut Type) {
        if let Type::ImplTrait(hidden) = ty {
            let underscore_token = Token![_](hidden.impl_token.span);
            *ty = Type::Infer(TypeInfer {
                attrs: Vec::new(),
                underscore_token,
            });
        } else {
            visit_mut::visit_type_mut(self, ty);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{first_borrow, inferred, owned_form};
    use quote::ToTokens;

    #[test]
    fn borrows_are_found() {
        for (ty, expected) in [
            ("&str", "& str"),
            ("Option<&'a mut [u8]>", "& 'a mut [u8]"),
            ("&'static [&u8]", "& u8"),
            ("Cow<'_, str>", "'_"),
            ("Cow<'a, str>", "'a"),
            ("Box<dyn Debug + 'a>", "'a"),
            ("impl Into<String> + '_", "'_"),
            ("fn(&'a str)", "& 'a str"),
            ("(u8, impl Fn(&'a str))", "& 'a str"),
            ("Pin<&mut Self>", "& mut Self"),
        ] {
            let ty = syn::parse_str(ty).expect(ty);
            assert_eq!(
                first_borrow(&ty).map(|found| (found.typed.to_string(), found.is_mut)),
                Some((expected.to_owned(), expected.contains(" mut ")))
            );
        }
    }

    #[test]
    fn owned_types_have_no_borrow() {
        for ty in [
            "String",
            "&'static str",
            "Cow<'static, str>",
            "Box<dyn Debug + 'static>",
            "fn(&str, Cow<'_, str>) -> &u8",
            "for<'a> fn(&'a str) -> &'a u8",
            "Arc<dyn for<'a> Fn(&'a str, &u8) -> Cow<'a, str>>",
            "impl Fn(&str) -> Option<&str> + Send",
            "[u8; { 'a: loop { break 'a 4 } }]",
        ] {
            let ty = syn::parse_str(ty).expect(ty);
            assert_eq!(
                first_borrow(&ty).map(|found| found.typed.to_string()),
                None,
                "{ty:?}",
                ty = ty.to_token_stream()
            );
        }
    }

    #[test]
    fn a_borrow_has_an_owned_form() {
        for (ty, expected) in [
            ("&str", "`String`"),
            ("&[Vec<u8>]", "`Vec<Vec<u8>>`"),
            (
                "&HashMap<String, [u8; 4]>",
                "`Arc<HashMap<String, [u8; 4]>>`",
            ),
            ("&'a (dyn io::Read + Send)", "`Arc<dyn io::Read + Send>`"),
            ("Option<&str>", "an owned value"),
            ("&Cow<'_, str>", "an owned value"),
        ] {
            let ty = syn::parse_str(ty).expect(ty);
            assert_eq!(owned_form(&ty), expected);
        }
    }

    #[test]
    fn impl_trait_is_replaced_by_an_underscore() {
        let ty = syn::parse_str("Result<(impl Debug, Box<impl Iterator<Item = impl Copy>>), E>")
            .expect("a type");
        assert_eq!(
            inferred(&ty).to_token_stream().to_string(),
            "Result < (_ , Box < _ >) , E >"
        );
    }
}
