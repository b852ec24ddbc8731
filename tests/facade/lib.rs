//! A crate that reexports the runtime under another name and uses the attribute in its own macro.

pub use timeout_runtime as rt;

/// Defines a function with a limit of one second.
#[macro_export]
macro_rules! within_a_second {
    ($vis:vis fn $name:ident($($arg:ident: $type:ty),*) -> $returns:ty $body:block) => {
        #[$crate::rt::timeout(secs = 1, crate = $crate::rt)]
        $vis fn $name($($arg: $type),*) -> $returns $body
    };
}
