#[timeout(name = "connect", ms = 200, on_late = give_back)]
fn connect(pool: &Pool) -> Pin<Box<dyn Future<Output = Option<Connection>> + Send + '_>> {
    Box::pin(pool.take())
}
// becomes

fn connect(
    pool: &Pool,
) -> Pin<Box<dyn Future<Output = Option<Connection>> + Send + '_>> {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<3usize> = [
        __timeout_p::options::name,
        __timeout_p::options::ms,
        __timeout_p::options::on_late,
    ];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new("connect");
    __timeout_p::returns(<Option<Connection> as __timeout_p::FromTimeout>::from_timeout);
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __options = __options.ms(200);
    let __on_late = __timeout_p::OnLateFunction::<Option<Connection>>::checked(give_back)
        .function();
    let __on_late = __timeout_p::on_late_call(
        __timeout_p::never_run::<Option<Connection>>,
        move |__value| __on_late(__value),
    );
    __timeout_p::Box::pin(
        __timeout_p::returned_future_inline_or::<
            __timeout_p::LateGuard<Option<Connection>, _>,
            _,
            _,
            _,
            _,
        >(
            __options,
            __timeout_p::disarm_or_convert::<Option<Connection>>(),
            __timeout_p::guard_returned_future(
                __on_late,
                move |
                    (): (),
                | -> Pin<Box<dyn Future<Output = Option<Connection>> + Send + '_>> {
                    let pool = pool;
                    ({ Box::pin(pool.take()) })
                },
            ),
            __timeout_p::guarded_returned::<Option<Connection>, _>(),
        ),
    )
}
