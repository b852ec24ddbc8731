#[timeout(ms = 200)]
fn load(self: Arc<Self>, key: String) -> Result<Value, TimeoutError> {
    self.read(&key)
}
// becomes

fn load(self: Arc<Self>, key: String) -> Result<Value, TimeoutError> {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<1usize> = [__timeout_p::options::ms];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new(
        __timeout_p::concat!(__timeout_p::module_path!(), "::", "load"),
    );
    __timeout_p::returns(
        <Result<Value, TimeoutError> as __timeout_p::FromTimeout>::from_timeout,
    );
    <Result<Value, TimeoutError> as __timeout_p::Sent>::sent();
    __timeout_p::Covered::check(
        __timeout_p::ReturnType::new(
                __timeout_p::never_run::<Result<Value, TimeoutError>>,
            )
            .content_covered(),
    );
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __options = __options.ms(200);
    return __timeout_p::sync_worker::<
        Result<Value, TimeoutError>,
        _,
        _,
    >(
        __options,
        move |(): ()| -> Result<Value, TimeoutError> {
            __timeout_p::Moved::lent(&self);
            let key = __timeout_p::Moved::moved(key);
            ({ self.read(&key) })
        },
    );
}
