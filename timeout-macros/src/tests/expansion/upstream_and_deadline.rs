#[timeout(deadline = request.deadline, upstream = [shutdown, self.token()], inherit = false)]
fn ship(self: Arc<Self>, request: Request, shutdown: Option<CancelToken>) -> Option<u32> {
    self.send(1)
}
// becomes

fn ship(
    self: Arc<Self>,
    request: Request,
    shutdown: Option<CancelToken>,
) -> Option<u32> {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<3usize> = [
        __timeout_p::options::deadline,
        __timeout_p::options::upstream,
        __timeout_p::options::inherit,
    ];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new(
        __timeout_p::concat!(__timeout_p::module_path!(), "::", "ship"),
    );
    __timeout_p::returns(<Option<u32> as __timeout_p::FromTimeout>::from_timeout);
    <Option<u32> as __timeout_p::Sent>::sent();
    __timeout_p::Covered::check(
        __timeout_p::ReturnType::new(__timeout_p::never_run::<Option<u32>>)
            .content_covered(),
    );
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY).detached();
    let __options = __timeout_p::SharedDeadline::set(request.deadline, __options);
    let __options = __timeout_p::Upstream::link(&shutdown, __options);
    let __options = __timeout_p::Upstream::link(&self.token(), __options);
    return __timeout_p::sync_worker::<
        Option<u32>,
        _,
        _,
    >(
        __options,
        move |(): ()| -> Option<u32> {
            __timeout_p::Moved::lent(&self);
            let request = __timeout_p::Moved::moved(request);
            let _ = &request;
            let shutdown = __timeout_p::Moved::moved(shutdown);
            let _ = &shutdown;
            ({ self.send(1) })
        },
    );
}
