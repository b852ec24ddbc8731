//! Prints the table, and compares it with the target.

use std::time::Duration;

use crate::library::{COMMANDS, Library};
use crate::variant::Variant;

/// Prints the table. Returns `false` if `#[timeout]` takes longer than `#[tracing::instrument]`.
pub(crate) fn print(libraries: &[Library]) -> bool {
    println!(
        "| command | functions | median | fastest to slowest | of plain | of `#[tracing::instrument]` |"
    );
    println!("|---|---|---|---|---|---|");
    let mut met = true;
    for (index, command) in COMMANDS.into_iter().enumerate() {
        let of = |variant| {
            let library = libraries.iter().find(|library| library.variant == variant);
            &library.expect("each group has this variant").taken[index]
        };
        let (plain, instrument) = (of(Variant::Plain), of(Variant::Instrument));
        for library in libraries {
            let taken = &library.taken[index];
            let seconds = sorted(taken.iter().map(Duration::as_secs_f64));
            let (fastest, slowest) = (seconds[0], seconds[seconds.len() - 1]);
            println!(
                "| `cargo {command}` | {} | {:.2} s | {fastest:.2} to {slowest:.2} s | {:.2} | {:.2} |",
                library.variant.title(),
                median(&seconds),
                ratio(taken, plain),
                ratio(taken, instrument),
            );
        }
        met &= ratio(of(Variant::Timeout), instrument) <= 1.0;
    }
    met
}

/// The median of the ratios of each round.
fn ratio(taken: &[Duration], base: &[Duration]) -> f64 {
    let rounds = taken.iter().zip(base);
    median(&sorted(
        rounds.map(|(taken, base)| taken.as_secs_f64() / base.as_secs_f64()),
    ))
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 0 {
        f64::midpoint(sorted[middle - 1], sorted[middle])
    } else {
        sorted[middle]
    }
}
