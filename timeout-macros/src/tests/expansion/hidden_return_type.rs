#[timeout(name = "c", ms = 200)]
fn c(from: impl Into<String>) -> Result<impl Iterator<Item = u8> + use<>, TimeoutError> {
    Ok(from.into().into_bytes().into_iter())
}
// becomes

fn c(from: impl Into<String>) -> Result<impl Iterator<Item = u8> + use<>, TimeoutError> {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<2usize> = [
        __timeout_p::options::name,
        __timeout_p::options::ms,
    ];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new("c");
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __options = __options.ms(200);
    return __timeout_p::sync_worker::<
        Result<_, TimeoutError>,
        _,
        _,
    >(
        __options,
        move |(): ()| -> Result<_, TimeoutError> {
            let from = __timeout_p::MovedType::moved(from);
            ({ Ok(from.into().into_bytes().into_iter()) })
        },
    );
}
