#[timeout(name = "connect", ms = 200, on_late = give_back)]
fn connect(pool: Arc<Pool>) -> Result<Connection, TimeoutError> {
    pool.take()
}
// becomes

fn connect(pool: Arc<Pool>) -> Result<Connection, TimeoutError> {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<3usize> = [
        __timeout_p::options::name,
        __timeout_p::options::ms,
        __timeout_p::options::on_late,
    ];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new("connect");
    __timeout_p::returns(
        <Result<Connection, TimeoutError> as __timeout_p::FromTimeout>::from_timeout,
    );
    <Result<Connection, TimeoutError> as __timeout_p::Sent>::sent();
    __timeout_p::Covered::check(
        __timeout_p::ReturnType::new(
                __timeout_p::never_run::<Result<Connection, TimeoutError>>,
            )
            .content_covered(),
    );
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __options = __options.ms(200);
    let __on_late = __timeout_p::OnLateFunction::<
        Result<Connection, TimeoutError>,
    >::checked(give_back)
        .function();
    let __on_late = __timeout_p::SendOnLate::moved(__on_late);
    let __on_late = __timeout_p::on_late_call(
        __timeout_p::never_run::<Result<Connection, TimeoutError>>,
        move |__value| __on_late(__value),
    );
    return __timeout_p::sync_worker_or::<
        __timeout_p::LateGuard<Result<Connection, TimeoutError>, _>,
        _,
        _,
        _,
    >(
        __options,
        __timeout_p::disarm_or_convert::<Result<Connection, TimeoutError>>(),
        __timeout_p::guard_operation(
            __on_late,
            move |(): ()| -> Result<Connection, TimeoutError> {
                let pool = __timeout_p::Moved::moved(pool);
                ({ pool.take() })
            },
        ),
        __timeout_p::guarded_returned::<Result<Connection, TimeoutError>, _>(),
    );
}
