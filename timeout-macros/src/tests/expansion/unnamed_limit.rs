#[timeout("1m 30s", cancel = false)]
fn scan(rows: Vec<u64>) -> Result<usize, TimeoutError> {
    Ok(rows.len())
}

// becomes

fn scan(rows: Vec<u64>) -> Result<usize, TimeoutError> {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<1usize> = [__timeout_p::options::cancel];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new(
            __timeout_p::concat!(__timeout_p::module_path!(), "::", "scan"),
        )
        .keep_running();
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
    let __options = __options.limit(__timeout_p::Duration::new(90u64, 0u32));
    return __timeout_p::sync_worker::<
        Result<usize, TimeoutError>,
        _,
        _,
    >(
        __options,
        move |(): ()| -> Result<usize, TimeoutError> {
            let rows = __timeout_p::Moved::moved(rows);
            ({ Ok(rows.len()) })
        },
    );
}
