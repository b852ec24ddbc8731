#[timeout(ms = 200)]
async fn load(mut self, _key: &str) -> Result<Value, TimeoutError> {
    self.count += 1;
    Ok(self.value)
}
// becomes

async fn load(mut self, _key: &str) -> Result<Value, TimeoutError> {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<1usize> = [__timeout_p::options::ms];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new(
        __timeout_p::concat!(__timeout_p::module_path!(), "::", "load"),
    );
    __timeout_p::returns(
        <Result<Value, TimeoutError> as __timeout_p::FromTimeout>::from_timeout,
    );
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __options = __options.ms(200);
    let mut __call = __timeout_p::InlineCall::new(__options);
    let __op = async move {
        if false {
            return __timeout_p::never_run::<Result<Value, TimeoutError>>();
        }
        let _ = &self;
        let _key = __timeout_p::keep(_key);
        ({
            self.count += 1;
            Ok(self.value)
        })
    };
    let __op = __timeout_p::pin!(__op);
    return __call.until_verdict::<Result<Value, TimeoutError>, _>(__op).await;
}
