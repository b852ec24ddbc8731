//! `done` keeps no memory after the channel is dropped, although its token lives on.

use crate::in_use;
use crate::own_process::in_own_process;
use timeout_runtime::CancelToken;

const CALLS: usize = 100_000;

// Fails if a dropped channel stays registered with its token.
#[test]
fn a_hundred_thousand_dropped_channels_keep_no_memory() {
    in_own_process(|| {
        let token = CancelToken::new();
        let child = token.child();
        // Lists grow once, to their largest size.
        drop((token.done(), child.done()));
        let before = in_use();
        for _ in 0..CALLS {
            drop((token.done(), child.done(), token.child().done()));
        }
        let grown = in_use().saturating_sub(before);
        assert!(grown < 4096, "{grown} bytes are left");

        let (token, before) = (CancelToken::new(), in_use());
        let channels: Vec<_> = (0..1000).map(|_| token.done()).collect();
        token.cancel();
        drop(channels);
        let grown = in_use().saturating_sub(before);
        assert!(grown < 4096, "{grown} bytes are left after a cancellation");
    });
}
