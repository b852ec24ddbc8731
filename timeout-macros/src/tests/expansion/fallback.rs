#[timeout(name = "count", ms = 200, fallback = |_| 0)]
fn count(rows: Vec<Row>) -> usize {
    rows.len()
}
// becomes

fn count(rows: Vec<Row>) -> usize {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<3usize> = [
        __timeout_p::options::name,
        __timeout_p::options::ms,
        __timeout_p::options::fallback,
    ];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new("count");
    <usize as __timeout_p::Sent>::sent();
    __timeout_p::Covered::check(
        __timeout_p::ReturnType::new(__timeout_p::never_run::<usize>).covered(),
    );
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __options = __options.ms(200);
    let __fallback = __timeout_p::fallback(__timeout_p::never_run::<usize>, |_| 0)
        .function();
    let __fallback = __timeout_p::fallback_call(move |__error| __fallback(__error));
    return __timeout_p::sync_worker_or::<
        usize,
        _,
        _,
        _,
    >(
        __options,
        __fallback,
        move |(): ()| -> usize {
            let rows = __timeout_p::Moved::moved(rows);
            ({ rows.len() })
        },
        |__value| __timeout_p::ReturnValue(__value).returned(),
    );
}
