#[timeout(name = "scan", secs = LIMIT, run = "inline")]
fn scan<'a, T: Ord>(rows: &'a [T]) -> Result<Option<&'a T>, TimeoutError>
where
    T: Clone,
{
    Ok(rows.iter().max())
}
// becomes

fn scan<'a, T: Ord>(rows: &'a [T]) -> Result<Option<&'a T>, TimeoutError>
where
    T: Clone,
{
    use ::timeout_runtime::__timeout_options::private as __timeout_p;
    const _: __timeout_p::options::Words<3usize> = [
        __timeout_p::options::name,
        __timeout_p::options::secs,
        __timeout_p::options::run,
    ];
    static __TIMEOUT_POLICY: __timeout_p::Policy = __timeout_p::Policy::new("scan");
    __timeout_p::returns(
        <Result<Option<&'a T>, TimeoutError> as __timeout_p::FromTimeout>::from_timeout,
    );
    __timeout_p::Covered::check(
        __timeout_p::ReturnType::new(
                __timeout_p::never_run::<Result<Option<&'a T>, TimeoutError>>,
            )
            .content_covered(),
    );
    let __options = __timeout_p::call_options(&__TIMEOUT_POLICY);
    let __options = __options.secs(__timeout_p::Secs::given(LIMIT));
    return __timeout_p::sync_inline::<
        Result<Option<&'a T>, TimeoutError>,
        _,
        _,
    >(
        __options,
        move |(): ()| -> Result<Option<&'a T>, TimeoutError> {
            let rows = rows;
            ({ Ok(rows.iter().max()) })
        },
    );
}
