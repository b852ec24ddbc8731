#[timeout(name = "stock", ms = 50)]
async fn stock(client: &Client, sku: &str) -> Result<u32, AppError> {
    client.get(sku).await
}
// becomes

async fn stock(client: &Client, sku: &str) -> Result<u32, AppError> {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<2usize> = [
        __timeout_p::options::name,
        __timeout_p::options::ms,
    ];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new("stock");
    __timeout_p::returns(
        <Result<u32, AppError> as __timeout_p::FromTimeout>::from_timeout,
    );
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __options = __options.ms(50);
    let mut __call = __timeout_p::InlineCall::new(__options);
    let __op = async move {
        if false {
            return __timeout_p::never_run::<Result<u32, AppError>>();
        }
        let client = client;
        let sku = sku;
        ({ client.get(sku).await })
    };
    let __op = __timeout_p::pin!(__op);
    return __call.until_verdict::<Result<u32, AppError>, _>(__op).await;
}
