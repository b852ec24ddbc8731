//! Reads the plot of `choose_limit` by the labels of its axes, as a person would.

use roxmltree::{Document, Node};

/// The allowed error of a line's position, in pixels.
const PRECISION: f64 = 1.0;

/// The allowed distance between a text and its line, in pixels.
const BESIDE: f64 = 10.0;

type Point = (f64, f64);

struct Label {
    text: String,
    at: Point,
    colour: String,
}

struct Stroke {
    points: Vec<Point>,
    colour: String,
}

pub(crate) struct Plot {
    labels: Vec<Label>,
    strokes: Vec<Stroke>,
}

impl Plot {
    pub(crate) fn parse(svg: &str) -> Self {
        let svg = Document::parse(svg).expect("the plot is valid XML");
        let nodes = || svg.root_element().descendants();
        let labels = nodes().filter(|node| node.has_tag_name("text"));
        let strokes = nodes().filter(|node| node.has_tag_name("polyline"));
        Self {
            labels: labels.map(label).collect(),
            strokes: strokes.map(stroke).collect(),
        }
    }

    /// Returns the numbers at the axis with this unit, and their positions.
    fn ticks(&self, unit: &str) -> Vec<(f64, Point)> {
        let ticks = self.labels.iter().filter_map(|label| {
            let number = label.text.strip_suffix(unit)?;
            Some((number.parse().ok()?, label.at))
        });
        ticks.collect()
    }

    fn x_of(&self, millis: f64) -> f64 {
        let ticks = self.ticks(" ms");
        place(millis, ticks.iter().map(|&(value, (x, _))| (value, x)))
    }

    fn y_of(&self, percent: f64) -> f64 {
        let ticks = self.ticks(" %");
        place(percent, ticks.iter().map(|&(value, (_, y))| (value, y)))
    }

    /// Asserts that a line is at this limit, and `text` in the same colour beside it.
    #[track_caller]
    pub(crate) fn assert_limit(&self, millis: u32, text: &str) {
        let label = self.labels.iter().find(|label| label.text == text);
        let label = label.expect("the plot has the text");
        let lines = self
            .strokes
            .iter()
            .filter(|stroke| stroke.colour == label.colour);
        let lines: Vec<_> = lines.map(|line| &line.points[..]).collect();
        let &[&[(x, top), (end, bottom)]] = &lines[..] else {
            panic!("{lines:?}");
        };
        assert_near(x, self.x_of(millis.into()), PRECISION);
        assert_near(x, end, 0.0);
        assert_near(x, label.at.0, BESIDE);
        assert!((bottom - top).abs() > 300.0, "from {top} to {bottom}");
    }

    /// Asserts that the curve, the longest stroke, passes `percent` at this limit.
    #[track_caller]
    pub(crate) fn assert_cuts(&self, millis: u32, percent: f64) {
        let (x, y) = (self.x_of(millis.into()), self.y_of(percent));
        let curve = self.strokes.iter().max_by_key(|stroke| stroke.points.len());
        let curve = &curve.expect("there is a curve").points;
        // The limit is rounded up to whole milliseconds, so the curve can pass slightly earlier.
        let before = curve.iter().rfind(|at| at.0 < x - 2.0 * PRECISION);
        let after = curve.iter().find(|at| at.0 > x + PRECISION);
        let (before, after) = before.zip(after).expect("the curve extends to both sides");
        // The y coordinate of an SVG grows downwards.
        assert!(before.1 <= y + PRECISION, "{before:?} is below {y}");
        assert!(after.1 >= y - PRECISION, "{after:?} is above {y}");
    }
}

/// Returns the position of a value on a logarithmic axis with these ticks.
fn place(value: f64, ticks: impl Iterator<Item = (f64, f64)>) -> f64 {
    let ticks: Vec<_> = ticks.collect();
    let [(first, start), .., (last, end)] = ticks[..] else {
        panic!("too few ticks: {ticks:?}");
    };
    let place = |value: f64| start + (end - start) * (value / first).ln() / (last / first).ln();
    for &(value, at) in &ticks {
        assert_near(at, place(value), PRECISION);
    }
    place(value)
}

#[track_caller]
fn assert_near(one: f64, other: f64, precision: f64) {
    assert!((one - other).abs() <= precision, "{one} and {other}");
}

fn number(node: Node<'_, '_>, name: &str) -> f64 {
    let number = node.attribute(name).and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("{node:?} has no {name}"))
}

fn label(node: Node<'_, '_>) -> Label {
    Label {
        text: node.text().unwrap_or_default().trim().to_owned(),
        at: (number(node, "x"), number(node, "y")),
        colour: node.attribute("fill").unwrap_or_default().to_owned(),
    }
}

fn stroke(node: Node<'_, '_>) -> Stroke {
    let points = node.attribute("points").unwrap_or_default();
    let points = points.split_whitespace().map(|point| {
        let (x, y) = point.split_once(',').expect("a point has two numbers");
        let [x, y] = [x, y].map(|number| number.parse().expect("a number"));
        (x, y)
    });
    Stroke {
        points: points.collect(),
        colour: node.attribute("stroke").unwrap_or_default().to_owned(),
    }
}
