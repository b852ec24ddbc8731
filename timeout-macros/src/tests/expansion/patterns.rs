#[timeout(name = "sum", ms = 200)]
fn sum((a, mut b): (u32, u32), _: u8, Req { id, .. }: Req, mut r#type: u32, ref c: u8) -> Option<u32> {
    b += 1;
    r#type += a;
    Some(b + id + r#type)
}
// becomes

fn sum(
    __arg0: (u32, u32),
    __arg1: u8,
    __arg2: Req,
    r#type: u32,
    __arg4: u8,
) -> Option<u32> {
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<2usize> = [
        __timeout_p::options::name,
        __timeout_p::options::ms,
    ];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new("sum");
    __timeout_p::returns(<Option<u32> as __timeout_p::FromTimeout>::from_timeout);
    <Option<u32> as __timeout_p::Sent>::sent();
    __timeout_p::Covered::check(
        __timeout_p::ReturnType::new(__timeout_p::never_run::<Option<u32>>)
            .content_covered(),
    );
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __options = __options.ms(200);
    return __timeout_p::sync_worker::<
        Option<u32>,
        _,
        _,
    >(
        __options,
        move |(): ()| -> Option<u32> {
            let mut __arg0 = __timeout_p::Moved::moved(__arg0);
            let (a, mut b) = __arg0;
            let __arg1 = __timeout_p::Moved::moved(__arg1);
            let mut __arg2 = __timeout_p::Moved::moved(__arg2);
            let Req { id, .. } = __arg2;
            let mut r#type = __timeout_p::Moved::moved(r#type);
            let mut __arg4 = __timeout_p::Moved::moved(__arg4);
            let ref c = __arg4;
            ({
                b += 1;
                r#type += a;
                Some(b + id + r#type)
            })
        },
    );
}
