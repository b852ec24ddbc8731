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
    use ::timeout_runtime::__timeout_runtime as __timeout_p;
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new(
        __timeout_p::concat!(__timeout_p::module_path!(), "::", "count"),
    );
    let __ask = __timeout_p::ask(&__TIMEOUT_POLICY);
    let __ask = __ask.ms(50);
    let __fallback = __timeout_p::fallback(__timeout_p::never_run::<usize>, |_| 0)
        .function();
    let __fallback = __timeout_p::or(move |__error| __fallback(__error));
    __timeout_p::Box::pin(
        __timeout_p::made_inline_or::<
            usize,
            _,
            _,
            _,
            _,
        >(
            __ask,
            __fallback,
            move |
                (): (),
            | -> ::core::pin::Pin<
                Box<
                    dyn ::core::future::Future<
                        Output = usize,
                    > + ::core::marker::Send + 'async_trait,
                >,
            > {
                let _ = &self;
                ({ Box::pin(async move { self.rows().await.len() }) })
            },
            |__answer| __timeout_p::Answer(__answer).ending(),
        ),
    )
}
