//! Draws the plot: the percentage of calls that each limit would cut, and two marked limits.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use tower::BoxError;

const DARK_GREEN: RGBColor = RGBColor(0, 112, 0);

/// A marked limit: a vertical line with a text.
pub(crate) struct Line {
    /// In milliseconds.
    limit: u64,
    text: String,
    side: Side,
    /// The height of the text on the y axis, in percent.
    height: f64,
    colour: RGBColor,
}

/// The side of the line on which the text is.
enum Side {
    Left,
    Right,
}

impl Line {
    pub(crate) fn present(limit: u64, text: String) -> Self {
        Self {
            limit,
            text,
            side: Side::Left,
            height: 0.2,
            colour: RED,
        }
    }

    pub(crate) fn recommended(limit: u64, text: String) -> Self {
        Self {
            limit,
            text,
            side: Side::Right,
            height: 50.0,
            colour: DARK_GREEN,
        }
    }
}

/// Draws the plot as SVG. The points of `curve` are in milliseconds and percent.
pub(crate) fn draw(
    title: String,
    curve: Vec<(f64, f64)>,
    lines: [Line; 2],
) -> Result<String, BoxError> {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, (900, 560)).into_drawing_area();
    area.fill(&WHITE)?;
    let (millis, percent) = (1.0..1000.0, 0.05..100.0);
    let mut chart = ChartBuilder::on(&area)
        .caption(title, ("sans-serif", 24))
        .margin(16)
        .margin_right(40)
        .x_label_area_size(56)
        .y_label_area_size(80)
        .build_cartesian_2d(millis.log_scale(), percent.clone().log_scale())?;
    chart
        .configure_mesh()
        .x_desc("limit (log scale)")
        .y_desc("calls cut (log scale)")
        .x_label_formatter(&|millis| format!("{millis} ms"))
        .y_label_formatter(&|percent| format!("{percent} %"))
        .label_style(("sans-serif", 17))
        .axis_desc_style(("sans-serif", 19))
        .draw()?;
    chart.draw_series(LineSeries::new(curve, BLUE.stroke_width(2)))?;
    for line in lines {
        let limit = f64::from(u32::try_from(line.limit)?);
        let ends = [(limit, percent.start), (limit, percent.end)];
        chart.draw_series(LineSeries::new(ends, line.colour.stroke_width(2)))?;
        let style = ("sans-serif", 17).into_font().color(&line.colour);
        let (anchor, away) = match line.side {
            Side::Left => (HPos::Right, -8),
            Side::Right => (HPos::Left, 8),
        };
        let style = style.pos(Pos::new(anchor, VPos::Center));
        let text = Text::new(line.text, (away, 0), style);
        chart.draw_series([EmptyElement::at((limit, line.height)) + text])?;
    }
    area.present()?;
    drop((chart, area));
    Ok(svg)
}
