mod facade {
    pub mod runtime {
        pub use timeout_runtime::*;
    }

    #[macro_export]
    macro_rules! scan {
        ($runtime:path) => {
            #[facade::runtime::timeout(secs = 60, crate = $runtime)]
            fn by_path(rows: Vec<u8>) -> Option<usize> {
                Some(rows.len())
            }
        };
        () => {
            #[facade::runtime::timeout(secs = 60, crate = $crate::facade::runtime)]
            fn by_dollar_crate(rows: Vec<u8>) -> Option<usize> {
                Some(rows.len())
            }
        };
    }
}

scan!(facade::runtime);
scan!();

#[facade::runtime::timeout(secs = 60, crate = "facade::runtime")]
fn by_string(rows: Vec<u8>) -> Option<usize> {
    Some(rows.len())
}

#[facade::runtime::timeout(secs = 60, crate = crate::facade::runtime)]
async fn by_absolute_path(rows: &[u8]) -> Option<usize> {
    Some(rows.len())
}

fn main() {
    assert_eq!(by_path(vec![1]), Some(1));
    assert_eq!(by_dollar_crate(vec![1]), Some(1));
    assert_eq!(by_string(vec![1]), Some(1));
    drop(by_absolute_path(&[]));
}
