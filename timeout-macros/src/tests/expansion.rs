//! Compares expansions with the files in `expansion/`. Each file shows one function before and
//! after. To rewrite the files for review, run the tests with `UPDATE_EXPANSIONS=1`.

use std::path::Path;

const BECOMES: &str = "\n// becomes\n\n";

#[track_caller]
fn check(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/tests/expansion")
        .join(name)
        .with_extension("rs");
    let text = std::fs::read_to_string(&path).expect("the file can be read");
    let (before, after) = text.split_once(BECOMES).unwrap_or((text.trim_end(), ""));
    let expansion = super::expand(before);
    let file =
        syn::parse2(expansion.clone()).unwrap_or_else(|error| panic!("{error} in {expansion}"));
    let expansion = prettyplease::unparse(&file);
    if std::env::var_os("UPDATE_EXPANSIONS").is_some() {
        std::fs::write(&path, format!("{before}{BECOMES}{expansion}"))
            .expect("the file can be written");
    } else {
        assert_eq!(expansion, after, "{name}");
    }
}

macro_rules! expansions {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            check(stringify!($name));
        }
    )*};
}

expansions! {
    sync_worker
    sync_inline
    async_inline
    async_task
    async_worker
    token
    token_in_format_string
    token_of_caller
    token_of_caller_under_cfg
    fallback
    async_fallback
    on_late
    on_late_inline
    on_late_of_a_future
    options_in_order
    unnamed_limit
    unnamed_limit_of_a_variable
    upstream_and_deadline
    test_below
    test_above
    async_test
    receiver_on_worker
    receiver_inline
    patterns
    argument_attributes
    inner_attributes
    hidden_return_type
    renamed_runtime
    raw_name
    unsafe_inline
    no_return_type
    future
    boxed_future
}
