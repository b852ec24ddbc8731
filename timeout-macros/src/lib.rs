//! The `#[timeout]` attribute of the timeout-runtime crate.

#![forbid(unsafe_code)]

mod args;
mod bindings;
mod duration;
mod errors;
mod expand;
mod item;
mod params;
mod plan;
mod suggest;
mod token;
mod types;
mod values;

use proc_macro2::TokenStream;
use quote::quote;

/// TODO
#[proc_macro_attribute]
pub fn timeout(
    args: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    expand(args.into(), item.into()).into()
}

fn expand(args: TokenStream, typed: TokenStream) -> TokenStream {
    let mut errors = errors::Errors::default();
    let args = args::Args::parse(args, &mut errors);
    let expanded = match item::Item::parse(&typed, &mut errors) {
        None => typed,
        Some(item) => {
            let door = plan::Door::new(&args, &item);
            let plan = plan::Plan::new(args, &item, &door, &mut errors);
            plan.map_or_else(
                || expand::as_typed(&item, &door),
                |plan| expand::wrapped(&plan),
            )
        }
    };
    let errors = errors.into_tokens();
    quote!(#expanded #errors)
}
