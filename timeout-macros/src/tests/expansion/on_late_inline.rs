#[timeout(name = "connect", ms = 200, on_late = |late| pool.put(late), fallback = |_| Connection::none())]
async fn connect(pool: &Pool) -> Connection {
    pool.take().await
}
// becomes

async fn connect(pool: &Pool) -> Connection {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<4usize> = [
        __timeout_p::options::name,
        __timeout_p::options::ms,
        __timeout_p::options::on_late,
        __timeout_p::options::fallback,
    ];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new("connect");
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __options = __options.ms(200);
    let __on_late = __timeout_p::on_late(
            __timeout_p::never_run::<Connection>,
            |late| pool.put(late),
        )
        .function();
    let __on_late = __timeout_p::on_late_call(
        __timeout_p::never_run::<Connection>,
        move |__value| __on_late(__value),
    );
    let __fallback = __timeout_p::fallback(
            __timeout_p::never_run::<Connection>,
            |_| Connection::none(),
        )
        .function();
    let __fallback = __timeout_p::fallback_call(move |__error| __fallback(__error));
    let mut __call = __timeout_p::InlineCall::new(__options);
    let __op = __timeout_p::guard_future(
        __on_late,
        async move {
            if false {
                return __timeout_p::never_run::<Connection>();
            }
            let pool = pool;
            let _ = &pool;
            return ({ pool.take().await });
        },
    );
    let __op = __timeout_p::pin!(__op);
    return __call
        .until_verdict_or::<
            __timeout_p::LateGuard<Connection, _>,
            _,
            _,
        >(
            __timeout_p::disarm(__fallback),
            __op,
            |__value| __timeout_p::ReturnValue(__value.value()).returned(),
        )
        .await;
}
