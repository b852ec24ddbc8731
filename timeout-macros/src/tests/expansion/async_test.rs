#[timeout("1m")]
#[tokio::test]
async fn it_ends() {
    assert_eq!(6 * 7, 42);
}

// becomes

#[tokio::test]
async fn it_ends() {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<0usize> = [];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new(
        __timeout_p::concat!(__timeout_p::module_path!(), "::", "it_ends"),
    );
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __options = __options.limit(__timeout_p::Duration::new(60u64, 0u32));
    let __fallback = __timeout_p::fallback_call(|__error| {
        __timeout_p::TestError(__error).fail()
    });
    let mut __call = __timeout_p::InlineCall::new(__options);
    let __op = async move {
        if false {
            return __timeout_p::never_run::<()>();
        }
        ({
            assert_eq!(6 * 7, 42);
        })
    };
    let __op = __timeout_p::pin!(__op);
    return __call
        .until_verdict_or::<
            (),
            _,
            _,
        >(__fallback, __op, |__value| __timeout_p::ReturnValue(__value).returned())
        .await;
}
