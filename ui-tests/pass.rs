//! Correct uses of `#[timeout]`, each compiled and run as documentation: Cargo then compiles all of
//! them as one program, with the libraries that it has built for other tests.

/// Documents a module with a file in `pass`.
macro_rules! correct_uses {
    ($($module:ident $($flags:literal)?: $file:literal,)*) => {$(
        #[doc = concat!("```", $($flags,)? "\n", include_str!($file), "\n```")]
        pub mod $module {}
    )*};
}

correct_uses! {
    crate_somewhere_else "standalone_crate": "pass/args/crate-somewhere-else.rs",
    every_option: "pass/args/every-option.rs",
    limit_left_out: "pass/args/limit-left-out.rs",
    limit_without_name: "pass/args/limit-without-name.rs",
    ms_names_a_part_of_a_pattern: "pass/args/ms-names-a-part-of-a-pattern.rs",
    values_through_a_macro: "pass/args/values-through-a-macro.rs",
    names_of_its_own: "pass/body/names-of-its-own.rs",
    token_misspelt: "pass/body/token-misspelt.rs",
    answer_that_cannot_say_time_ran_out: "pass/bounds/answer-that-cannot-say-time-ran-out.rs",
    argument_not_send: "pass/bounds/argument-not-send.rs",
    error_behind_an_alias: "pass/bounds/error-behind-an-alias.rs",
    future_in_a_result: "pass/bounds/future-in-a-result.rs",
    generic_argument_not_static: "pass/bounds/generic-argument-not-static.rs",
    borrowed_for_change: "pass/signature/borrowed-for-change.rs",
    borrowed_receiver: "pass/signature/borrowed-receiver.rs",
    borrowed_string: "pass/signature/borrowed-string.rs",
    returned_future: "pass/signature/returned-future.rs",
    token_of_another_type: "pass/signature/token-of-another-type.rs",
    unsafe_function_inline: "pass/signature/unsafe-function-inline.rs",
}
