#[timeout("1m")]
fn it_ends() {
    assert_eq!(6 * 7, 42);
}

// becomes

fn it_ends() {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<0usize> = [];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new(
        __timeout_p::concat!(__timeout_p::module_path!(), "::", "it_ends"),
    );
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __options = __options.limit(__timeout_p::Duration::new(60u64, 0u32));
    let __fallback = __timeout_p::fallback_call(|__error| {
        __timeout_p::TestError(__error).fail()
    });
    return __timeout_p::sync_worker_or::<
        (),
        _,
        _,
        _,
    >(
        __options,
        __fallback,
        move |(): ()| -> () {
            ({
                assert_eq!(6 * 7, 42);
            })
        },
        |__value| __timeout_p::ReturnValue(__value).returned(),
    );
}
#[cfg(not(test))]
::core::compile_error! {
    "a function that returns nothing cannot say that its time ran out; return `Result<(), TimeoutError>`, or set `fallback`, as in `fallback = panic_on_timeout`"
}
