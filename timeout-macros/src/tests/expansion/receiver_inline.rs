#[timeout(ms = 200)]
async fn load(mut self, _key: &str) -> Result<Value, TimeoutError> {
    self.count += 1;
    Ok(self.value)
}
// becomes

async fn load(mut self, _key: &str) -> Result<Value, TimeoutError> {
    use ::timeout_runtime::__private as __timeout_p;
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new(
        __timeout_p::concat!(__timeout_p::module_path!(), "::", "load"),
    );
    let __ask = __timeout_p::ask(&__TIMEOUT_POLICY);
    let __ask = __ask.ms(200);
    __timeout_p::async_inline::<
        Result<Value, TimeoutError>,
        _,
        _,
        _,
    >(
            __ask,
            move |(): ()| async move {
                if false {
                    return __timeout_p::never_run::<Result<Value, TimeoutError>>();
                }
                let _ = &self;
                #[allow(clippy::pedantic, clippy::restriction)]
                let _key = _key;
                ({
                    self.count += 1;
                    Ok(self.value)
                })
            },
        )
        .await
}
