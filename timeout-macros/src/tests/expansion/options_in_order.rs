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
    use ::timeout_runtime::__private as __timeout_p;
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new(NAME);
    let __ask = __timeout_p::ask(&__TIMEOUT_POLICY);
    let __ask = __ask.max_abandoned(self.max());
    let __fallback = __timeout_p::fallback::<Config, _>(self.fallback());
    let __ask = __ask.grace(self.grace());
    let __ask = __ask.limit(self.config.lock().limit);
    __timeout_p::async_inline_or::<
        Config,
        _,
        _,
        _,
        _,
    >(
            __ask,
            __fallback,
            move |(): ()| async move {
                if false {
                    return __timeout_p::never_run::<Config>();
                }
                let _ = &self;
                ({ self.read().await })
            },
            |__answer| __timeout_p::Answer(__answer).ending(),
        )
        .await
}
