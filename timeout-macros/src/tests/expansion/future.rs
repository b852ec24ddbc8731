#[timeout(name = "load", ms = self.ms)]
pub fn load(&self, id: u32) -> impl Future<Output = Result<Vec<u8>, TimeoutError>> + Send + use<'_> {
    let request = self.request(id);
    async move { request.send(cancel_token).await }
}
// becomes

pub fn load(
    &self,
    id: u32,
) -> impl Future<Output = Result<Vec<u8>, TimeoutError>> + Send + use<'_> {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<2usize> = [
        __timeout_p::options::name,
        __timeout_p::options::ms,
    ];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new("load");
    __timeout_p::returns(
        <Result<Vec<u8>, TimeoutError> as __timeout_p::FromTimeout>::from_timeout,
    );
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __options = __options.ms(__timeout_p::Ms::given(self.ms));
    __timeout_p::returned_future_inline::<
        Result<Vec<u8>, TimeoutError>,
        _,
        _,
        _,
    >(
        __options,
        move |__token: __timeout_p::CancelToken| -> _ {
            let _ = &self;
            let id = id;
            let cancel_token = __token;
            let _ = &cancel_token;
            ({
                let request = self.request(id);
                async move { request.send(cancel_token).await }
            })
        },
    )
}
