//! What the compiler says about wrong uses of `#[timeout]`: a folder for each family of rules, a file for each mistake.
//!
//! The texts are those of one compiler. To write them anew, for review, run the test with `TRYBUILD=overwrite`.

#[test]
fn right_uses_compile() {
    trybuild::TestCases::new().pass("pass/*/*.rs");
}

#[test]
fn each_mistake_is_told_where_it_is() {
    trybuild::TestCases::new().compile_fail("fail/*/*.rs");
}
