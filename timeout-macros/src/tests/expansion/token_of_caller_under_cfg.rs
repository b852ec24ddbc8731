#[timeout(name = "scan", ms = 200, run = "inline")]
fn scan(
    #[cfg(unix)]
    #[allow(unused_mut)]
    mut cancel_token: CancelToken,
) -> Result<usize, TimeoutError> {
    sort(cancel_token)
}
// becomes

fn scan(
    #[cfg(unix)]
    #[allow(unused_mut)]
    cancel_token: CancelToken,
) -> Result<usize, TimeoutError> {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<3usize> = [
        __timeout_p::options::name,
        __timeout_p::options::ms,
        __timeout_p::options::run,
    ];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new("scan");
    __timeout_p::returns(
        <Result<usize, TimeoutError> as __timeout_p::FromTimeout>::from_timeout,
    );
    __timeout_p::Covered::check(
        __timeout_p::ReturnType::new(
                __timeout_p::never_run::<Result<usize, TimeoutError>>,
            )
            .content_covered(),
    );
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __form = __timeout_p::ByValue;
    #[cfg(unix)]
    let __form = __timeout_p::Caller::new(&cancel_token).form();
    #[cfg(unix)]
    let __options = __timeout_p::CallerToken::link(&cancel_token, __options);
    #[cfg(unix)]
    let _ = &cancel_token;
    let __options = __options.ms(200);
    return __timeout_p::sync_inline::<
        Result<usize, TimeoutError>,
        _,
        _,
    >(
        __options,
        move |__token: __timeout_p::CancelToken| -> Result<usize, TimeoutError> {
            #[allow(unused_mut)]
            let mut cancel_token = __form.bind(&__token);
            let _ = &cancel_token;
            ({ sort(cancel_token) })
        },
    );
}
