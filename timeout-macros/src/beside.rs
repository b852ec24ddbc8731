//! Classifies the attributes below `#[timeout]`: macros among them get its expansion.

use syn::{Attribute, Meta};

use crate::params::attribute_words;

/// Attributes of functions that only the compiler, its tools or this macro read. Any other
/// attribute may be a macro that reads names.
const INERT: [&str; 26] = [
    "allow",
    "automatically_derived",
    "bench",
    "cfg",
    "cfg_attr",
    "cold",
    "coverage",
    "deny",
    "deprecated",
    "doc",
    "expect",
    "export_name",
    "forbid",
    "ignore",
    "inline",
    "instruction_set",
    "link_section",
    "must_use",
    "no_mangle",
    "should_panic",
    "target_feature",
    "test",
    "timeout",
    "track_caller",
    "unsafe",
    "warn",
];

/// The first segments of paths such as `rustfmt::skip`.
const TOOLS: [&str; 5] = ["clippy", "diagnostic", "miri", "rust_analyzer", "rustfmt"];

/// The last segments of attributes that make a function a test.
const TESTS: [&str; 4] = ["test", "rstest", "test_case", "wasm_bindgen_test"];

/// Whether an attribute among `attrs` makes the function a test, such as `#[tokio::test]`.
pub(crate) fn has_test(attrs: &[Attribute]) -> bool {
    let is_test = |word: &String| TESTS.contains(&word.as_str());
    attrs.iter().any(|attr| {
        let words = words(attr);
        if attr.path().is_ident("cfg_attr") {
            words.iter().any(is_test)
        } else {
            words.last().is_some_and(is_test)
        }
    })
}

/// Whether a macro among `attrs` may read the names of the parameters.
pub(crate) fn has_macro(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attr| {
        let words = words(attr);
        let is = |word: Option<&String>, list: &[&str]| {
            word.is_some_and(|word| list.contains(&word.as_str()))
        };
        let is_inert = words.iter().all(|word| is(Some(word), &INERT));
        !is_inert && !is(words.first(), &TOOLS) && !is(words.last(), &["timeout"])
    })
}

/// The `#[instrument]` of `tracing` among `attrs`.
pub(crate) fn instrument(attrs: &[Attribute]) -> Option<&Attribute> {
    attrs
        .iter()
        .find(|attr| words(attr).iter().any(|word| word == "instrument"))
}

/// The segments of an attribute's path, or the words of the attributes that a condition adds.
fn words(attr: &Attribute) -> Vec<String> {
    match &attr.meta {
        Meta::List(list) if list.path.is_ident("cfg_attr") => attribute_words(list.tokens.clone())
            .map(|word| word.to_string())
            .collect(),
        meta => {
            let segments = meta.path().segments.iter();
            segments.map(|segment| segment.ident.to_string()).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{has_macro, has_test, instrument};
    use quote::quote;
    use syn::{Attribute, ItemFn};

    fn attributes(typed: &str) -> Vec<Attribute> {
        let tokens: proc_macro2::TokenStream = typed.parse().expect(typed);
        let function = quote!(#tokens fn f() {});
        syn::parse2::<ItemFn>(function).expect(typed).attrs
    }

    #[test]
    fn attributes_of_tests_are_recognised() {
        for (attribute, expected) in [
            ("#[test]", true),
            ("#[inline] #[tokio::test(start_paused = true)]", true),
            ("#[::core::prelude::v1::test]", true),
            ("#[rstest::rstest] #[case(7)]", true),
            ("#[test_case(7)]", true),
            ("#[cfg_attr(not(miri), tokio::test)]", true),
            ("#[cfg_attr(test, inline)]", false),
            ("#[cfg(test)]", false),
            ("#[test::fixture]", false),
            ("#[should_panic]", false),
            ("", false),
        ] {
            assert_eq!(has_test(&attributes(attribute)), expected, "{attribute}");
        }
    }

    #[test]
    fn macros_and_attributes_of_the_compiler_are_distinguished() {
        for inert in [
            "",
            "#[inline] #[must_use = \"x\"] /// text",
            "#[cfg_attr(unix, inline)]",
            "#[rustfmt::skip] #[clippy::cognitive_complexity = \"5\"]",
            "#[unsafe(no_mangle)]",
            "#[timeout_runtime::timeout(ms = 5)]",
        ] {
            assert!(!has_macro(&attributes(inert)), "{inert}");
        }
        for read in [
            "#[instrument]",
            "#[inline] #[tracing::instrument(skip_all)]",
            "#[cfg_attr(unix, inline, tracing::instrument(ret))]",
            "#[cached]",
        ] {
            assert!(has_macro(&attributes(read)), "{read}");
            let is_instrument = read.contains("instrument");
            assert_eq!(
                instrument(&attributes(read)).is_some(),
                is_instrument,
                "{read}"
            );
        }
    }
}
