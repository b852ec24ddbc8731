//! The function after a mistake, for callers and editors.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use crate::door::Door;
use crate::editor;
use crate::expand::{answer, braces, here};
use crate::item::Item;
use crate::params::Param;
use crate::shape::Shape;
use crate::site::Site;

/// The function as typed, after a mistake: its token is bound, so that the body means what it will
/// mean.
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
pub(crate) fn as_typed(item: &Item, door: &Door) -> TokenStream {
    let Item {
        attrs,
        vis,
        sig,
        body,
        ..
    } = item;
    let here = here(sig);
    let is_bound = Param::all(sig, &door.token, &Site::default())
        .iter()
        .any(Param::is_token);
    // A `const fn` could call nothing of the runtime.
    let token = (!is_bound && sig.constness.is_none()).then(|| {
        let uses = &door.uses;
        quote_spanned! {here=>
            #(let #uses = __timeout_p::never_run::<__timeout_p::CancelToken>(); let _ = &#uses;)*
        }
    });
    let (inner_attrs, open, block) = (&body.attrs, door.open(here), &body.block);
    let values = editor::values(&door.typed, &answer(Shape::of(sig), here), here);
    let block = braces(
        quote!(#inner_attrs #open #values #token (#block)),
        body.braces,
    );
    quote!(#(#attrs)* #vis #sig #block)
}
