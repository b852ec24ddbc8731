//! A crate that hands the runtime on under another name, with the attribute inside a macro of its own.

pub use timeout_runtime as rt;

/// A function whose calls take a second at most.
#[macro_export]
macro_rules! within_a_second {
    ($vis:vis fn $name:ident($($arg:ident: $type:ty),*) -> $answer:ty $body:block) => {
        #[$crate::rt::timeout(secs = 1, crate = $crate::rt)]
        $vis fn $name($($arg: $type),*) -> $answer $body
    };
}
