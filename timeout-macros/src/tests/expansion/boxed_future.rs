#[timeout(ms = 50, fallback = |_| 0)]
fn count<'life0, 'async_trait>(
    &'life0 self,
) -> ::core::pin::Pin<Box<dyn ::core::future::Future<Output = usize> + ::core::marker::Send + 'async_trait>>
where
    'life0: 'async_trait,
    Self: 'async_trait,
{
    Box::pin(async move { self.rows().await.len() })
}
// becomes

fn count<'life0, 'async_trait>(
    &'life0 self,
) -> ::core::pin::Pin<
    Box<dyn ::core::future::Future<Output = usize> + ::core::marker::Send + 'async_trait>,
>
where
    'life0: 'async_trait,
    Self: 'async_trait,
{
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<2usize> = [
        __timeout_p::options::ms,
        __timeout_p::options::fallback,
    ];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new(
        __timeout_p::concat!(__timeout_p::module_path!(), "::", "count"),
    );
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __options = __options.ms(50);
    let __fallback = __timeout_p::fallback(__timeout_p::never_run::<usize>, |_| 0)
        .function();
    let __fallback = __timeout_p::fallback_call(move |__error| __fallback(__error));
    Box::pin(async move {
        let mut __call = __timeout_p::InlineCall::new(__options);
        let __op = async move {
            if false {
                return __timeout_p::never_run::<usize>();
            }
            ({ self.rows().await.len() })
        };
        let __op = __timeout_p::pin!(__op);
        return __call
            .until_verdict_or::<
                usize,
                _,
                _,
            >(__fallback, __op, |__value| __timeout_p::ReturnValue(__value).returned())
            .await;
    })
}
