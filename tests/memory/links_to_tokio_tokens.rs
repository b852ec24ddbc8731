//! A link between a token and one of `tokio_util` keeps no memory after one of the two is dropped.

use crate::MEMORY;
use crate::own_process::in_own_process;
use stats_alloc::Region;
use timeout_runtime::CancelToken;
use timeout_runtime::integrations::tokio_util::LinkedToken;
use tokio_util::sync::CancellationToken;

const LINKS: usize = 10_000;

/// The number of additional allocations after `links`.
fn left(links: impl Fn()) -> usize {
    // Lists grow once, to their largest size.
    links();
    let region = Region::new(MEMORY);
    (0..LINKS).for_each(|_| links());
    let change = region.change();
    change.allocations.saturating_sub(change.deallocations)
}

// Fails if a link keeps our token.
#[test]
fn dropped_links_keep_no_memory() {
    in_own_process(|| {
        let (ours, theirs) = (CancelToken::new(), CancellationToken::new());
        let from = left(|| drop(CancelToken::from(&theirs)));
        assert!(from < 100, "{from} allocations are left by links to ours");
        let below = left(|| drop(CancelToken::from(&theirs).child()));
        assert!(below < 100, "{below} allocations are left by tokens below");
        let to = left(|| drop(LinkedToken::from(&ours)));
        assert!(to < 100, "{to} allocations are left by links to theirs");
        let both = left(|| {
            let theirs = LinkedToken::from(&ours);
            drop(CancelToken::from(&*theirs));
        });
        assert!(both < 100, "{both} allocations are left by links of links");
        let cancelled = left(|| {
            let theirs = CancellationToken::new();
            let _ours = CancelToken::linked([CancelToken::from(&theirs), ours.clone()]);
        });
        assert!(
            cancelled < 100,
            "{cancelled} allocations are left by dropped ones"
        );
        let cancelled = left(|| {
            let theirs = CancellationToken::new();
            let ours = CancelToken::from(&theirs);
            let below = LinkedToken::from(&ours);
            theirs.cancel();
            assert!(below.is_cancelled());
        });
        assert!(
            cancelled < 100,
            "{cancelled} allocations are left by cancelled ones"
        );
    });
}
