//! Measures how long functions with `#[timeout]` take to compile, compared with the same functions
//! without an attribute and with other attributes.
//!
//! `benches/README.md` describes the measurement and contains a run.

#[path = "compile_time/library.rs"]
mod library;
#[path = "compile_time/options.rs"]
mod options;
#[path = "compile_time/table.rs"]
mod table;
#[path = "compile_time/variant.rs"]
mod variant;

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use library::{COMMANDS, Library};
use options::Options;
use variant::Variant;

/// A module of functions that a library repeats.
struct Functions {
    name: &'static str,
    title: &'static str,
    module: &'static str,
    /// How many functions the module has.
    count: usize,
    variants: &'static [Variant],
}

const ALL: [Functions; 2] = [
    Functions {
        name: "mixture",
        title: "functions and methods, sync and async",
        module: include_str!("compile_time/functions/mixture.rs"),
        count: 10,
        variants: &[Variant::Plain, Variant::Timeout, Variant::Instrument],
    },
    Functions {
        name: "methods",
        title: "async methods of traits",
        module: include_str!("compile_time/functions/methods.rs"),
        count: 5,
        variants: &[
            Variant::Plain,
            Variant::Timeout,
            Variant::Instrument,
            Variant::AsyncTrait,
        ],
    },
];

/// Writes the libraries into a new workspace with the dependencies of this one.
fn write(root: &Path, options: &Options) -> io::Result<Vec<Vec<Library>>> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    fs::create_dir_all(root)?;
    fs::copy(repository.join("Cargo.lock"), root.join("Cargo.lock"))?;
    let workspace = "[workspace]\nresolver = \"3\"\nmembers = [\"*-*\"]\n";
    fs::write(root.join("Cargo.toml"), workspace)?;
    let group = |functions: &Functions| {
        let modules = options.functions.div_ceil(functions.count);
        let variants = functions.variants.iter();
        variants
            .map(|variant| Library::write(root, functions, *variant, modules))
            .collect()
    };
    ALL.iter().map(group).collect()
}

fn main() -> ExitCode {
    let Some(options) = Options::read() else {
        // A test run checks only that the bench compiles.
        return ExitCode::SUCCESS;
    };
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile_time");
    let mut groups = write(&root, &options).expect("the libraries can be written");
    // Every variant in turn, so that a slow moment of the machine affects all of them. The first
    // round is not counted: it also compiles the dependencies of the libraries.
    for round in 0..=options.rounds {
        eprintln!("round {round} of {}", options.rounds);
        for (index, command) in COMMANDS.into_iter().enumerate() {
            for library in groups.iter_mut().flatten() {
                let taken = library.compile(&root, command);
                if round > 0 {
                    library.taken[index].push(taken);
                }
            }
        }
    }
    let mut met = true;
    for (functions, libraries) in ALL.iter().zip(&groups) {
        let count = options.functions.div_ceil(functions.count) * functions.count;
        println!("\n{count} {}:\n", functions.title);
        met &= table::print(libraries);
    }
    if met {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
