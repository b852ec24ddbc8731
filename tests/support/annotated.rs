//! Turns one body into five annotated functions, one for each place to run.

/// A module `$name` whose `call(way, ..)` calls the function for that place. With a second body for
/// the async functions, `start(way, ..)` returns the future of an async call, not polled yet.
macro_rules! annotated {
    (
        mod $name:ident, [$($option:tt)*], ($($arg:ident: $type:ty),*) -> $returns:ty,
        $body:block, async $async_body:block
    ) => {
        annotated! {
            @mod $name, [$($option)*], ($($arg: $type),*) -> $returns, $body, $async_body,

            pub(super) fn start(
                way: support::Way,
                $($arg: $type),*
            ) -> std::pin::Pin<Box<dyn Future<Output = $returns> + Send>> {
                use support::Way;

                match way {
                    Way::AsyncInline => Box::pin(async_inline($($arg),*)),
                    Way::AsyncTask => Box::pin(async_task($($arg),*)),
                    Way::AsyncWorker => Box::pin(async_worker($($arg),*)),
                    Way::SyncWorker | Way::SyncInline => panic!("{way:?} gives no future"),
                }
            }
        }
    };
    (mod $name:ident, [$($option:tt)*], ($($arg:ident: $type:ty),*) -> $returns:ty $body:block) => {
        annotated! { @mod $name, [$($option)*], ($($arg: $type),*) -> $returns, $body, $body, }
    };
    (
        @mod $name:ident, [$($option:tt)*], ($($arg:ident: $type:ty),*) -> $returns:ty,
        $body:block, $async_body:block, $($more:tt)*
    ) => {
        mod $name {
            use super::*;

            #[timeout_runtime::timeout($($option)*)]
            fn sync_worker($($arg: $type),*) -> $returns $body

            #[timeout_runtime::timeout($($option)*, run = "inline")]
            fn sync_inline($($arg: $type),*) -> $returns $body

            #[timeout_runtime::timeout($($option)*, run = "inline")]
            async fn async_inline($($arg: $type),*) -> $returns $async_body

            #[timeout_runtime::timeout($($option)*, run = "task")]
            async fn async_task($($arg: $type),*) -> $returns $async_body

            #[timeout_runtime::timeout($($option)*, run = "worker")]
            async fn async_worker($($arg: $type),*) -> $returns $async_body

            pub(super) fn call(way: support::Way, $($arg: $type),*) -> $returns {
                use support::{Way, in_runtime};

                match way {
                    Way::SyncWorker => sync_worker($($arg),*),
                    Way::SyncInline => sync_inline($($arg),*),
                    Way::AsyncInline => in_runtime(async_inline($($arg),*)),
                    Way::AsyncTask => in_runtime(async_task($($arg),*)),
                    Way::AsyncWorker => in_runtime(async_worker($($arg),*)),
                }
            }

            $($more)*
        }
    };
}
