#[timeout(name = "scan", ms = 200)]
fn scan(cancel_token: &CancelToken, rows: Vec<Row>) -> Result<usize, TimeoutError> {
    sort(cancel_token, rows)
}
// becomes

fn scan(cancel_token: &CancelToken, rows: Vec<Row>) -> Result<usize, TimeoutError> {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<2usize> = [
        __timeout_p::options::name,
        __timeout_p::options::ms,
    ];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new("scan");
    __timeout_p::returns(
        <Result<usize, TimeoutError> as __timeout_p::FromTimeout>::from_timeout,
    );
    <Result<usize, TimeoutError> as __timeout_p::Sent>::sent();
    __timeout_p::Covered::check(
        __timeout_p::ReturnType::new(
                __timeout_p::never_run::<Result<usize, TimeoutError>>,
            )
            .content_covered(),
    );
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __form = __timeout_p::Caller::new(&cancel_token).form();
    let __options = __timeout_p::CallerToken::link(&cancel_token, __options);
    let _ = &cancel_token;
    let __options = __options.ms(200);
    return __timeout_p::sync_worker::<
        Result<usize, TimeoutError>,
        _,
        _,
    >(
        __options,
        move |__token: __timeout_p::CancelToken| -> Result<usize, TimeoutError> {
            let rows = __timeout_p::Moved::moved(rows);
            let cancel_token = __form.bind(&__token);
            let _ = &cancel_token;
            ({ sort(cancel_token, rows) })
        },
    );
}
