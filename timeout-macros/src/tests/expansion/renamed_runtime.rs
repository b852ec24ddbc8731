#[timeout(name = "c", ms = 200, crate = "facade::rt")]
fn c() -> Option<u32> {
    None
}
// becomes

fn c() -> Option<u32> {
    use facade::rt::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<2usize> = [
        __timeout_p::options::name,
        __timeout_p::options::ms,
    ];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new("c");
    __timeout_p::returns(<Option<u32> as __timeout_p::FromTimeout>::from_timeout);
    <Option<u32> as __timeout_p::Sent>::sent();
    __timeout_p::Covered::check(
        __timeout_p::ReturnType::new(__timeout_p::never_run::<Option<u32>>)
            .content_covered(),
    );
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __options = __options.ms(200);
    return __timeout_p::sync_worker::<
        Option<u32>,
        _,
        _,
    >(__options, move |(): ()| -> Option<u32> { ({ None }) });
}
