//! Finds out whether a function is a test. A test that returns nothing panics when its call has no
//! result, and so needs no `fallback`.

use syn::{GenericParam, Safety, Signature};

use crate::beside;
use crate::item::Item;
use crate::shape::Shape;

/// Whether a function is a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TestFunction {
    /// An attribute below `#[timeout]` makes it a test.
    Yes,
    /// It may be a test in a test build: rustc removes a `#[test]` above `#[timeout]` before it
    /// expands the latter. In other builds it is not a test, since rustc removes those.
    InTestBuild,
    No,
}

impl TestFunction {
    pub(crate) fn of(item: &Item, shape: Shape<'_>) -> Self {
        if beside::has_test(&item.attrs) {
            Self::Yes
        } else if may_be_test(&item.sig, shape) {
            Self::InTestBuild
        } else {
            Self::No
        }
    }
}

/// Whether rustc accepts `#[test]` on a function with this signature.
fn may_be_test(sig: &Signature, shape: Shape<'_>) -> bool {
    let is_lifetime = |param| matches!(param, &GenericParam::Lifetime(_));
    matches!(shape, Shape::Sync(_))
        && sig.inputs.is_empty()
        && matches!(sig.safety, Safety::Default)
        && sig.generics.params.iter().all(is_lifetime)
}
