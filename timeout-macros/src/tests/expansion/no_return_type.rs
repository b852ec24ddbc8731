#[timeout(name = "wait", ms = 200, fallback = drop)]
async fn wait(gate: Gate) {
    gate.opened().await;
}
// becomes

async fn wait(gate: Gate) {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<3usize> = [
        __timeout_p::options::name,
        __timeout_p::options::ms,
        __timeout_p::options::fallback,
    ];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new("wait");
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __options = __options.ms(200);
    let __fallback = __timeout_p::Fallback::<()>::checked(drop).function();
    let __fallback = __timeout_p::fallback_call(move |__error| __fallback(__error));
    let mut __call = __timeout_p::InlineCall::new(__options);
    let __op = async move {
        if false {
            return __timeout_p::never_run::<()>();
        }
        let gate = gate;
        ({
            gate.opened().await;
        })
    };
    let __op = __timeout_p::pin!(__op);
    return __call
        .until_verdict_or::<
            (),
            _,
            _,
        >(__fallback, __op, |__value| __timeout_p::ReturnValue(__value).returned())
        .await;
}
