#[timeout(name = "count", ms = 200, fallback = nothing)]
async fn count(rows: &[Row]) -> usize {
    rows.len()
}
// becomes

async fn count(rows: &[Row]) -> usize {
    use ::timeout_runtime::__private as __timeout_p;
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new("count");
    let __ask = __timeout_p::ask(&__TIMEOUT_POLICY);
    let __ask = __ask.ms(200);
    let __fallback = __timeout_p::fallback::<usize, _>(nothing);
    __timeout_p::async_inline_or::<
        usize,
        _,
        _,
        _,
        _,
    >(
            __ask,
            __fallback,
            move |(): ()| async move {
                if false {
                    return __timeout_p::never_run::<usize>();
                }
                #[allow(clippy::pedantic, clippy::restriction)]
                let rows = rows;
                ({ rows.len() })
            },
            |__answer| __timeout_p::Answer(__answer).ending(),
        )
        .await
}
