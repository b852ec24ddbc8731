#[timeout(name = "c", ms = 200)]
async fn c(
    #[cfg(any())] gone: Missing,
    #[allow(unused_variables)] here: &str,
    #[expect(unused_variables)] there: &str,
    #[cfg_attr(unix, allow(unused_variables))] (a, b): (u8, u8),
    #[case] case: u8,
) -> Option<u32> {
    None
}
// becomes

async fn c(
    #[cfg(any())]
    gone: Missing,
    #[allow(unused_variables)]
    here: &str,
    there: &str,
    #[cfg_attr(unix, allow(unused_variables))]
    __arg3: (u8, u8),
    #[case]
    case: u8,
) -> Option<u32> {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<2usize> = [
        __timeout_p::options::name,
        __timeout_p::options::ms,
    ];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new("c");
    __timeout_p::returns(<Option<u32> as __timeout_p::FromTimeout>::from_timeout);
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __options = __options.ms(200);
    let mut __call = __timeout_p::InlineCall::new(__options);
    let __op = async move {
        if false {
            return __timeout_p::never_run::<Option<u32>>();
        }
        #[cfg(any())]
        let gone = gone;
        #[allow(unused_variables)]
        let here = here;
        #[expect(unused_variables)]
        let there = there;
        let mut __arg3 = __arg3;
        #[cfg_attr(unix, allow(unused_variables))]
        let (a, b) = __arg3;
        let case = case;
        ({ None })
    };
    let __op = __timeout_p::pin!(__op);
    return __call.until_verdict::<Option<u32>, _>(__op).await;
}
