#[timeout(name = "scan", ms = 200)]
fn scan(rows: Vec<Row>) -> Result<usize, TimeoutError> {
    cancel_token.check()?;
    Ok(rows.len())
}
// becomes

fn scan(rows: Vec<Row>) -> Result<usize, TimeoutError> {
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
    let __options = __options.ms(200);
    return __timeout_p::sync_worker::<
        Result<usize, TimeoutError>,
        _,
        _,
    >(
        __options,
        move |__token: __timeout_p::CancelToken| -> Result<usize, TimeoutError> {
            let rows = __timeout_p::Moved::moved(rows);
            let cancel_token = __token;
            let _ = &cancel_token;
            ({
                cancel_token.check()?;
                Ok(rows.len())
            })
        },
    );
}
