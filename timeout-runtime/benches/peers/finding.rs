//! [`Finding`]: the result of one row.

use crate::measured::{Figure, Measured, quartile};

/// The result of one row.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) row: String,
    pub(crate) figure: Figure,
    /// The values that are compared with the target, one per round.
    pub(crate) reached: Vec<f64>,
    pub(crate) ours: Side,
    pub(crate) peer: Option<Side>,
}

/// Medians over the rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side {
    pub(crate) value: f64,
    pub(crate) cpu: f64,
    pub(crate) allocations: f64,
    pub(crate) bytes: f64,
}

impl Side {
    pub(crate) fn new(figure: Figure, batches: &[Measured]) -> Self {
        let median = |figure| {
            let values: Vec<_> = batches.iter().map(|batch| batch.get(figure)).collect();
            quartile(&values, 2)
        };
        Self {
            value: median(figure),
            cpu: median(Figure::Cpu),
            allocations: median(Figure::Allocations),
            bytes: median(Figure::Bytes),
        }
    }

    fn write(self) -> String {
        format!(
            "{} {} {} {}",
            self.value, self.cpu, self.allocations, self.bytes
        )
    }

    fn read(text: &str) -> Option<Self> {
        let mut numbers = text.split(' ').map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some(Self {
            value: next()?,
            cpu: next()?,
            allocations: next()?,
            bytes: next()?,
        })
    }
}

impl Finding {
    /// Creates a finding from a single number, without rounds.
    pub(crate) fn count(row: &str, value: f64) -> Self {
        Self {
            row: row.to_owned(),
            figure: Figure::Count,
            reached: vec![value],
            ours: Side::new(Figure::Count, &[Measured::only(value)]),
            peer: None,
        }
    }

    pub(crate) fn median(&self) -> f64 {
        quartile(&self.reached, 2)
    }

    /// Returns the first and the third quartile of the rounds.
    pub(crate) fn middle_half(&self) -> (f64, f64) {
        (quartile(&self.reached, 1), quartile(&self.reached, 3))
    }

    /// Formats the finding as a line for the parent process.
    pub(crate) fn write(&self) -> String {
        let reached: Vec<_> = self.reached.iter().map(f64::to_string).collect();
        let peer = self.peer.map_or_else(String::new, Side::write);
        format!(
            "{}\t{:?}\t{}\t{}\t{peer}",
            self.row,
            self.figure,
            reached.join(" "),
            self.ours.write(),
        )
    }

    pub(crate) fn read(line: &str) -> Option<Self> {
        let mut columns = line.split('\t');
        let row = columns.next()?.to_owned();
        let name = columns.next()?;
        let reached = columns.next()?.split(' ').map(str::parse);
        Some(Self {
            row,
            figure: *Figure::ALL
                .iter()
                .find(|figure| format!("{figure:?}") == name)?,
            reached: reached.collect::<Result<_, _>>().ok()?,
            ours: Side::read(columns.next()?)?,
            peer: Side::read(columns.next()?),
        })
    }
}
