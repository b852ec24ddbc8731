#[timeout(
    max_abandoned = self.max(),
    fallback = self.fallback(),
    grace = self.grace(),
    limit = self.config.lock().limit,
    name = NAME,
)]
pub(crate) async fn load(&self) -> Config {
    self.read().await
}
// becomes

pub(crate) async fn load(&self) -> Config {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<5usize> = [
        __timeout_p::options::max_abandoned,
        __timeout_p::options::fallback,
        __timeout_p::options::grace,
        __timeout_p::options::limit,
        __timeout_p::options::name,
    ];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new(NAME);
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __given: usize = self.max();
    let __options = __options.max_abandoned(__given);
    let __fallback = __timeout_p::Fallback::<Config>::checked(self.fallback())
        .function();
    let __fallback = __timeout_p::fallback_call(move |__error| __fallback(__error));
    let __given: __timeout_p::Duration = self.grace();
    let __options = __options.grace(__given);
    let __options = __options.limit(__timeout_p::Limit::given(self.config.lock().limit));
    let mut __call = __timeout_p::InlineCall::new(__options);
    let __op = async move {
        if false {
            return __timeout_p::never_run::<Config>();
        }
        let _ = &self;
        return ({ self.read().await });
    };
    let __op = __timeout_p::pin!(__op);
    return __call
        .until_verdict_or::<
            Config,
            _,
            _,
        >(__fallback, __op, |__value| __timeout_p::ReturnValue(__value).returned())
        .await;
}
