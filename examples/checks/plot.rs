//! The plot of `choose_limit`, read as somebody would who looks at it: by the labels of its axes.

use roxmltree::{Document, Node};

/// How many pixels a line may be beside its place.
const PRECISION: f64 = 1.0;

/// How many pixels a text may be away from its line.
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
        let svg = Document::parse(svg).expect("it is XML");
        let nodes = || svg.root_element().descendants();
        let labels = nodes().filter(|node| node.has_tag_name("text"));
        let strokes = nodes().filter(|node| node.has_tag_name("polyline"));
        Self {
            labels: labels.map(label).collect(),
            strokes: strokes.map(stroke).collect(),
        }
    }

    /// The numbers at an axis, whose unit is `unit`, and where they stand.
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

    /// There is a line at this limit, and `text` beside it in its colour.
    #[track_caller]
    pub(crate) fn assert_limit(&self, millis: u32, text: &str) {
        let label = self.labels.iter().find(|label| label.text == text);
        let label = label.expect("the text is there");
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

    /// The curve, which is the longest stroke, passes `percent` at this limit.
    #[track_caller]
    pub(crate) fn assert_cuts(&self, millis: u32, percent: f64) {
        let (x, y) = (self.x_of(millis.into()), self.y_of(percent));
        let curve = self.strokes.iter().max_by_key(|stroke| stroke.points.len());
        let curve = &curve.expect("there is a curve").points;
        // A limit is rounded up to whole milliseconds, so the curve may pass somewhat earlier.
        let before = curve.iter().rfind(|at| at.0 < x - 2.0 * PRECISION);
        let after = curve.iter().find(|at| at.0 > x + PRECISION);
        let (before, after) = before.zip(after).expect("it goes from there to there");
        // What is higher has the smaller number.
        assert!(before.1 <= y + PRECISION, "{before:?} is below {y}");
        assert!(after.1 >= y - PRECISION, "{after:?} is above {y}");
    }
}

/// Where a value is on an axis with logarithmic steps that has these values at these places.
fn place(value: f64, ticks: impl Iterator<Item = (f64, f64)>) -> f64 {
    let ticks: Vec<_> = ticks.collect();
    let [(first, start), .., (last, end)] = ticks[..] else {
        panic!("these are too few: {ticks:?}");
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
