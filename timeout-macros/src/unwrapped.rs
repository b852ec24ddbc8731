//! Generates the function after a mistake, for callers and editors.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use crate::editor;
use crate::expand::{braces, here, result_type};
use crate::item::Item;
use crate::params::Param;
use crate::runtime_path::RuntimePath;
use crate::shape::Shape;
use crate::site::Site;

/// The function as typed, after a mistake. Its token is bound, so that names in the body resolve as
/// they will without the mistake.
///
/// ```text
/// fn scan(rows: Vec<Row>) -> Result<usize, TimeoutError> {
///     use ::timeout_runtime::__timeout_options::private as __timeout_p;
///     VALUES
///     let cancel_token = __timeout_p::never_run::<__timeout_p::CancelToken>();
///     let _ = &cancel_token;
///     ({ BODY })
/// }
/// ```
pub(crate) fn as_typed(item: &Item, runtime_path: &RuntimePath) -> TokenStream {
    let Item {
        attrs,
        vis,
        sig,
        body,
        ..
    } = item;
    let here = here(sig);
    let is_bound = Param::all(sig, &runtime_path.token, &Site::default())
        .iter()
        .any(Param::is_token);
    // A `const fn` cannot call the runtime.
    let token = (!is_bound && sig.constness.is_none()).then(|| {
        let uses = &runtime_path.uses;
        quote_spanned! {here=>
            #(let #uses = __timeout_p::never_run::<__timeout_p::CancelToken>(); let _ = &#uses;)*
        }
    });
    let (inner_attrs, open, block) = (&body.attrs, runtime_path.import(here), &body.block);
    let values = editor::values(
        &runtime_path.typed,
        &result_type(Shape::of(sig), here),
        here,
    );
    let block = braces(
        quote!(#inner_attrs #open #values #token (#block)),
        body.braces,
    );
    quote!(#(#attrs)* #vis #sig #block)
}
