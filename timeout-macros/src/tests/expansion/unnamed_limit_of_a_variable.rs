#[timeout(budget.per_call, grace = GRACE)]
async fn scan(budget: &Budget, rows: &[u64]) -> Result<usize, TimeoutError> {
    Ok(rows.len())
}

// becomes

async fn scan(budget: &Budget, rows: &[u64]) -> Result<usize, TimeoutError> {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<1usize> = [__timeout_p::options::grace];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new(
        __timeout_p::concat!(__timeout_p::module_path!(), "::", "scan"),
    );
    __timeout_p::returns(
        <Result<usize, TimeoutError> as __timeout_p::FromTimeout>::from_timeout,
    );
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __options = __options.limit(__timeout_p::Limit::given(budget.per_call));
    let __options = __options.grace(__timeout_p::Grace::given(GRACE));
    let mut __call = __timeout_p::InlineCall::new(__options);
    let __op = async move {
        if false {
            return __timeout_p::never_run::<Result<usize, TimeoutError>>();
        }
        let budget = budget;
        let _ = &budget;
        let rows = rows;
        ({ Ok(rows.len()) })
    };
    let __op = __timeout_p::pin!(__op);
    return __call.until_verdict::<Result<usize, TimeoutError>, _>(__op).await;
}
