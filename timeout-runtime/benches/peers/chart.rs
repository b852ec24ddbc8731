//! Draws the chart of the README: what a call costs beside its peers, on a logarithmic axis.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use crate::finding::Finding;

/// The rows of the chart, and what they compare.
const BARS: &[(&str, &str, &str)] = &[
    ("A1a", "async call, ready", "tokio::time::timeout"),
    ("A2", "async call, pending once", "tokio::time::timeout"),
    ("S2", "blocking call", "timeout(spawn_blocking)"),
    ("S3", "blocking call", "a thread per call"),
    ("T2a", "checking a token", "tokio-util"),
    (
        "S14c",
        "lateness, limit of 1 ms, blocking",
        "timeout(spawn_blocking)",
    ),
    (
        "A8",
        "lateness, limit of 1 ms, async",
        "tokio::time::timeout",
    ),
];

const WIDTH: f64 = 760.0;
const LABELS: f64 = 330.0;
/// The height of one bar, and of the pair of bars with the space below it.
const BAR: f64 = 13.0;
const PAIR: f64 = 40.0;
const TOP: f64 = 40.0;

/// The axis, in nanoseconds.
const FROM: f64 = 0.1;
const DECADES: i32 = 8;

/// Writes the chart as an SVG file.
pub(crate) fn write(path: &Path, findings: &[Finding]) -> io::Result<()> {
    let mut svg = String::new();
    let rows: Vec<_> = BARS
        .iter()
        .filter_map(|bar| Some((bar, findings.iter().find(|finding| finding.row == bar.0)?)))
        .collect();
    let height = TOP + PAIR * count(rows.len()) + 30.0;
    let _ = writeln!(
        svg,
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">
<title>Time per call, beside other ways to limit it</title>
<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>"##
    );
    legend(&mut svg);
    axis(&mut svg, height - 30.0);
    for (place, ((_, what, peer), finding)) in rows.into_iter().enumerate() {
        let top = TOP + PAIR * count(place);
        let theirs = finding.peer.as_ref().map_or(f64::NAN, |peer| peer.value);
        text(&mut svg, 8.0, top + 11.0, "#1b1f24", what);
        text(
            &mut svg,
            24.0,
            top + 26.0,
            "#57606a",
            &format!("beside {peer}"),
        );
        bar(&mut svg, top, "#0b6e4f", finding.ours.value);
        bar(&mut svg, top + BAR + 1.0, "#9aa4ad", theirs);
    }
    svg.push_str("</svg>\n");
    fs::write(path, svg)
}

fn legend(svg: &mut String) {
    for (left, color, name) in [
        (8.0, "#0b6e4f", "timeout-runtime"),
        (140.0, "#9aa4ad", "beside it"),
    ] {
        let _ = writeln!(
            svg,
            r#"<rect x="{left}" y="10" width="12" height="12" fill="{color}"/>"#
        );
        text(svg, left + 18.0, 20.0, "#1b1f24", name);
    }
}

/// Draws a line for each power of ten.
fn axis(svg: &mut String, bottom: f64) {
    const NAMES: [&str; 9] = [
        "0.1 ns", "1 ns", "10 ns", "100 ns", "1 µs", "10 µs", "100 µs", "1 ms", "10 ms",
    ];

    for (decade, name) in (0..=DECADES).zip(NAMES) {
        let x = position(FROM * 10_f64.powi(decade));
        let _ = writeln!(
            svg,
            r##"<line x1="{x:.1}" y1="{TOP}" x2="{x:.1}" y2="{bottom}" stroke="#d8dee4"/>"##
        );
        text(svg, x - 16.0, bottom + 16.0, "#57606a", name);
    }
}

/// Draws one bar, with its value beside it.
fn bar(svg: &mut String, top: f64, color: &str, nanos: f64) {
    if !nanos.is_finite() {
        return;
    }
    let end = position(nanos);
    let _ = writeln!(
        svg,
        r#"<rect x="{LABELS}" y="{top}" width="{:.1}" height="{BAR}" fill="{color}"/>"#,
        end - LABELS
    );
    text(svg, end + 4.0, top + 11.0, "#1b1f24", &short(nanos));
}

fn position(nanos: f64) -> f64 {
    let share = (nanos / FROM).log10() / f64::from(DECADES);
    LABELS + share.clamp(0.0, 1.0) * (WIDTH - LABELS - 60.0)
}

fn text(svg: &mut String, x: f64, y: f64, color: &str, text: &str) {
    let _ = writeln!(
        svg,
        r#"<text x="{x:.1}" y="{y:.1}" fill="{color}">{text}</text>"#
    );
}

fn short(nanos: f64) -> String {
    let (value, unit) = match nanos {
        nanos if nanos < 1e3 => (nanos, "ns"),
        nanos if nanos < 1e6 => (nanos / 1e3, "µs"),
        nanos => (nanos / 1e6, "ms"),
    };
    let decimals = usize::from(value < 10.0);
    format!("{value:.decimals$} {unit}")
}

fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::MAX, f64::from)
}
