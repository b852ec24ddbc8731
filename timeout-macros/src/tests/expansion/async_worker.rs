#[timeout(name = "render", limit = "1m 30s", run = "worker", grace = "250ms", max_abandoned = 4)]
async fn render(page: Page) -> Result<Html, AppError> {
    page.render().await
}
// becomes

async fn render(page: Page) -> Result<Html, AppError> {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<5usize> = [
        __timeout_p::options::name,
        __timeout_p::options::limit,
        __timeout_p::options::run,
        __timeout_p::options::grace,
        __timeout_p::options::max_abandoned,
    ];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new("render");
    __timeout_p::returns(
        <Result<Html, AppError> as __timeout_p::FromTimeout>::from_timeout,
    );
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __options = __options.limit(__timeout_p::Duration::new(90u64, 0u32));
    let __options = __options.grace(__timeout_p::Duration::new(0u64, 250000000u32));
    let __options = __options.max_abandoned(4);
    return __timeout_p::async_worker::<
        Result<Html, AppError>,
        _,
        _,
        _,
    >(
            __options,
            move |(): ()| async move {
                if false {
                    return __timeout_p::never_run::<Result<Html, AppError>>();
                }
                let page = __timeout_p::Moved::moved(page);
                ({ page.render().await })
            },
        )
        .await;
}
