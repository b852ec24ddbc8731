//! Prints the table of results, and finds the rows that miss their target.

use crate::finding::{Finding, Side};
use crate::options::Options;
use crate::targets::{ROWS, Row, Target};

/// Prints the table. Returns the names of the rows that miss their target.
pub(crate) fn print(options: &Options, findings: &[Finding]) -> Vec<&'static str> {
    println!(
        "| row | what | target | reached | middle half | ours | peer | unit | CPU ns | allocations | bytes | |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    let mut missed = Vec::new();
    for row in ROWS.iter().filter(|row| options.wants(row.name)) {
        let found = findings.iter().find(|finding| finding.row == row.name);
        let met = found.is_some_and(|finding| row.target.is_met(finding.median()));
        if let Some(finding) = found {
            println!("{}", line(row, finding, met));
        } else if !matches!(row.target, Target::None) {
            println!(
                "| {} | {} | {} | not measured | | | | | | | | |",
                row.name,
                row.what,
                aim(row.target)
            );
        }
        if found.is_some() && !met {
            missed.push(row.name);
        }
    }
    missed
}

fn line(row: &Row, finding: &Finding, met: bool) -> String {
    let (from, to) = finding.middle_half();
    let pair = |of: fn(&Side) -> f64| {
        let both = [Some(&finding.ours), finding.peer.as_ref()];
        let known = both
            .into_iter()
            .flatten()
            .map(of)
            .filter(|value| !value.is_nan());
        known.map(short).collect::<Vec<_>>().join(" / ")
    };
    let mark = match row.target {
        Target::None => "",
        _ if met => "ok",
        _ => "MISSED",
    };
    format!(
        "| {} | {} | {} | **{}** | {} to {} | {} | {} | {} | {} | {} | {} | {mark} |",
        row.name,
        row.what,
        aim(row.target),
        short(finding.median()),
        short(from),
        short(to),
        short(finding.ours.value),
        finding
            .peer
            .as_ref()
            .map_or_else(String::new, |peer| short(peer.value)),
        finding.figure.unit(),
        pair(|side| side.cpu),
        pair(|side| side.allocations),
        pair(|side| side.bytes),
    )
}

fn aim(target: Target) -> String {
    match target {
        Target::AtMost(most) | Target::PerCall(most) => format!("≤ {most}"),
        Target::AtLeast(least) => format!("≥ {least}"),
        Target::None => String::new(),
    }
}

/// Formats a value with three significant digits, or without decimals if it is larger.
///
/// A value that could not be measured is a question mark.
fn short(value: f64) -> String {
    match value.abs() {
        size if size.is_nan() => "?".to_owned(),
        size if size >= 99.95 => grouped(value),
        size if size >= 9.995 => format!("{value:.1}"),
        size if size >= 0.9995 => format!("{value:.2}"),
        size if size >= 0.000_5 => format!("{value:.3}"),
        _ => "0".to_owned(),
    }
}

/// Groups the digits in threes, as in 15 911 730.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}
