#[timeout(name = "store", ms = 50, cancel = false)]
async fn store(order: Order) -> Result<(), AppError> {
    order.store().await
}
// becomes

async fn store(order: Order) -> Result<(), AppError> {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<3usize> = [
        __timeout_p::options::name,
        __timeout_p::options::ms,
        __timeout_p::options::cancel,
    ];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new("store")
        .keep_running();
    __timeout_p::returns(
        <Result<(), AppError> as __timeout_p::FromTimeout>::from_timeout,
    );
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __options = __options.ms(50);
    return __timeout_p::async_task::<
        Result<(), AppError>,
        _,
        _,
        _,
    >(
            __options,
            move |(): ()| async move {
                if false {
                    return __timeout_p::never_run::<Result<(), AppError>>();
                }
                let order = __timeout_p::Moved::moved(order);
                ({ order.store().await })
            },
        )
        .await;
}
