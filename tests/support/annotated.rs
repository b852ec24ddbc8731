//! One body as five annotated functions, one for each way to run.

/// A module `$name` whose `call(way, ..)` calls the function that runs that way.
macro_rules! annotated {
    (mod $name:ident, [$($option:tt)*], ($($arg:ident: $type:ty),*) -> $answer:ty $body:block) => {
        mod $name {
            use super::*;

            #[timeout_runtime::timeout($($option)*)]
            fn sync_worker($($arg: $type),*) -> $answer $body

            #[timeout_runtime::timeout($($option)*, run = "inline")]
            fn sync_inline($($arg: $type),*) -> $answer $body

            #[timeout_runtime::timeout($($option)*, run = "inline")]
            async fn async_inline($($arg: $type),*) -> $answer $body

            #[timeout_runtime::timeout($($option)*, run = "task")]
            async fn async_task($($arg: $type),*) -> $answer $body

            #[timeout_runtime::timeout($($option)*, run = "worker")]
            async fn async_worker($($arg: $type),*) -> $answer $body

            pub(super) fn call(way: support::Way, $($arg: $type),*) -> $answer {
                use support::{Way, in_runtime};

                match way {
                    Way::SyncWorker => sync_worker($($arg),*),
                    Way::SyncInline => sync_inline($($arg),*),
                    Way::AsyncInline => in_runtime(async_inline($($arg),*)),
                    Way::AsyncTask => in_runtime(async_task($($arg),*)),
                    Way::AsyncWorker => in_runtime(async_worker($($arg),*)),
                }
            }
        }
    };
}
