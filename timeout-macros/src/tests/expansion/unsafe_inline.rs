#[timeout(name = "peek", ms = 200, run = "inline")]
unsafe fn peek(at: *const u8) -> Option<u8> {
    Some(unsafe { *at })
}
// becomes

unsafe fn peek(at: *const u8) -> Option<u8> {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<3usize> = [
        __timeout_p::options::name,
        __timeout_p::options::ms,
        __timeout_p::options::run,
    ];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new("peek");
    __timeout_p::returns(<Option<u8> as __timeout_p::FromTimeout>::from_timeout);
    __timeout_p::Covered::check(
        __timeout_p::ReturnType::new(__timeout_p::never_run::<Option<u8>>)
            .content_covered(),
    );
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __options = __options.ms(200);
    return __timeout_p::sync_inline::<
        Option<u8>,
        _,
        _,
    >(
        __options,
        move |(): ()| -> Option<u8> {
            let at = at;
            ({ Some(unsafe { *at }) })
        },
    );
}
