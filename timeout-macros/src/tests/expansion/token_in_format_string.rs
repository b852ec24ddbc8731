#[timeout(name = "show", ms = 200, token = stop)]
async fn show() -> Option<String> {
    Some(format!("{stop:?}"))
}
// becomes

async fn show() -> Option<String> {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<3usize> = [
        __timeout_p::options::name,
        __timeout_p::options::ms,
        __timeout_p::options::token,
    ];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new("show");
    __timeout_p::returns(<Option<String> as __timeout_p::FromTimeout>::from_timeout);
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __options = __options.ms(200);
    let mut __call = __timeout_p::InlineCall::new(__options);
    let __token = __call.param::<__timeout_p::CancelToken>();
    let __op = async move {
        if false {
            return __timeout_p::never_run::<Option<String>>();
        }
        let stop = __token;
        let _ = &stop;
        ({ Some(format!("{stop:?}")) })
    };
    let __op = __timeout_p::pin!(__op);
    return __call.until_verdict::<Option<String>, _>(__op).await;
}
