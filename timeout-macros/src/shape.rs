//! Finds out whether a function is sync, async or returns a future, and the type of its result.

use proc_macro2::Ident;
use syn::punctuated::Punctuated;
use syn::{
    AngleBracketedGenericArguments, GenericArgument, PathArguments, PathSegment, ReturnType,
    Signature, Token, Type, TypeParamBound,
};

use crate::types::visible;

#[derive(Clone, Copy)]
pub(crate) enum Shape<'a> {
    /// A `fn`. Without a return type, it returns `()`.
    Sync(Option<&'a Type>),
    /// An `async fn`.
    Async(Option<&'a Type>),
    /// A `fn` that returns a future.
    Future(Future<'a>),
}

/// A future in a return type.
#[derive(Clone, Copy)]
pub(crate) struct Future<'a> {
    /// The return type.
    pub(crate) whole: &'a Type,
    /// The output of the future.
    pub(crate) result_type: &'a Type,
    /// Whether it is `Pin<Box<dyn Future<…>>>`, and not `impl Future<…>`.
    pub(crate) boxed: bool,
}

impl<'a> Shape<'a> {
    pub(crate) fn of(sig: &'a Signature) -> Self {
        let output = match &sig.output {
            ReturnType::Default => None,
            ReturnType::Type(_, ty) => Some(&**ty),
        };
        match output.and_then(Future::of) {
            _ if sig.asyncness.is_some() => Self::Async(output),
            Some(future) => Self::Future(future),
            None => Self::Sync(output),
        }
    }

    /// The type of the result, if it is written.
    pub(crate) fn result_type(self) -> Option<&'a Type> {
        match self {
            Self::Sync(output) | Self::Async(output) => output,
            Self::Future(future) => Some(future.result_type),
        }
    }
}

impl<'a> Future<'a> {
    fn of(whole: &'a Type) -> Option<Self> {
        let (bounds, boxed) = match visible(whole) {
            Type::ImplTrait(hidden) => (&hidden.bounds, false),
            Type::Path(_) => match visible(argument(argument(whole, "Pin")?, "Box")?) {
                Type::TraitObject(object) => (&object.bounds, true),
                _ => return None,
            },
            _ => return None,
        };
        let result_type = output(bounds)?;
        Some(Self {
            whole,
            result_type,
            boxed,
        })
    }
}

/// `T` in `name<T>`.
fn argument<'a>(ty: &'a Type, name: &str) -> Option<&'a Type> {
    let Type::Path(path) = visible(ty) else {
        return None;
    };
    arguments(path.path.segments.last()?, name)?
        .args
        .iter()
        .find_map(|argument| match argument {
            GenericArgument::Type(ty) => Some(ty),
            _ => None,
        })
}

/// `T` in `Future<Output = T>`.
fn output(bounds: &Punctuated<TypeParamBound, Token![+]>) -> Option<&Type> {
    let is_output = |ident: &Ident| ident == "Output";
    bounds
        .iter()
        .filter_map(|bound| match bound {
            TypeParamBound::Trait(bound) => arguments(bound.path.segments.last()?, "Future"),
            _ => None,
        })
        .flat_map(|arguments| &arguments.args)
        .find_map(|argument| match argument {
            GenericArgument::AssocType(assigned) if is_output(&assigned.ident) => {
                Some(&assigned.ty)
            }
            _ => None,
        })
}

fn arguments<'a>(
    segment: &'a PathSegment,
    name: &str,
) -> Option<&'a AngleBracketedGenericArguments> {
    match &segment.arguments {
        PathArguments::AngleBracketed(arguments) if segment.ident == name => Some(arguments),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Shape;
    use quote::ToTokens;
    use syn::Signature;

    fn shape(signature: &str) -> (&'static str, Option<String>) {
        let signature: Signature = syn::parse_str(signature).expect(signature);
        let shape = Shape::of(&signature);
        let name = match shape {
            Shape::Sync(_) => "sync",
            Shape::Async(_) => "async",
            Shape::Future(future) if future.boxed => "boxed future",
            Shape::Future(_) => "future",
        };
        let result_type = shape
            .result_type()
            .map(|ty| ty.to_token_stream().to_string());
        (name, result_type)
    }

    #[test]
    fn a_future_in_the_return_type_is_found() {
        for (output, expected) in [
            ("impl Future<Output = u8>", "future"),
            (
                "impl Send + 'static + std::future::Future<Output = u8> + use<>",
                "future",
            ),
            ("(impl ::core::future::Future<Output = u8>)", "future"),
            ("Pin<Box<dyn Future<Output = u8>>>", "boxed future"),
            (
                "::core::pin::Pin<Box<dyn ::core::future::Future<Output = u8> + ::core::marker::Send + 'async_trait>>",
                "boxed future",
            ),
            ("Pin<Box<(dyn Future<Output = u8> + 'a)>>", "boxed future"),
        ] {
            let result_type = Some("u8".to_owned());
            assert_eq!(
                shape(&format!("fn f() -> {output}")),
                (expected, result_type)
            );
        }
    }

    #[test]
    fn a_type_that_only_resembles_a_future_is_a_value() {
        for output in [
            "impl Iterator<Item = u8>",
            "impl Future",
            "Box<dyn Future<Output = u8>>",
            "Pin<Rc<dyn Future<Output = u8>>>",
            "Pin<Box<Work>>",
            "Result<impl Future<Output = u8>, E>",
        ] {
            assert_eq!(shape(&format!("fn f() -> {output}")).0, "sync", "{output}");
        }
        assert_eq!(shape("fn f()"), ("sync", None));
        assert_eq!(shape("async fn f() -> impl Future<Output = u8>").0, "async");
    }
}
