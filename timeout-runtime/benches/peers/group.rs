//! [`Group`]: measures calls and their peers in rounds, one batch of each per round.

use std::thread;
use std::time::{Duration, Instant};

use crate::finding::{Finding, Side};
use crate::measured::{Figure, Measured};
use crate::options::Options;

/// The pause before a batch, in which the threads of the previous batch go to sleep.
const REST: Duration = Duration::from_millis(3);

/// The lanes that are measured side by side, and the rows that compare them.
pub(crate) struct Group<'a> {
    options: &'a Options,
    title: &'static str,
    lanes: Vec<Box<dyn FnMut() -> Measured + 'a>>,
    comparisons: Vec<Comparison>,
}

/// One kind of call in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane(usize);

struct Comparison {
    row: &'static str,
    figure: Figure,
    ours: Lane,
    peer: Option<Lane>,
    /// The cost without a limit, which is subtracted from both.
    plain: Option<Lane>,
}

impl Comparison {
    fn lanes(&self) -> impl Iterator<Item = Lane> {
        [Some(self.ours), self.peer, self.plain]
            .into_iter()
            .flatten()
    }
}

impl<'a> Group<'a> {
    pub(crate) fn new(options: &'a Options, title: &'static str) -> Self {
        Self {
            options,
            title,
            lanes: Vec::new(),
            comparisons: Vec::new(),
        }
    }

    pub(crate) fn lane(&mut self, batch: impl FnMut() -> Measured + 'a) -> Lane {
        self.lanes.push(Box::new(batch));
        Lane(self.lanes.len() - 1)
    }

    /// Adds a row with the ratio of our figure to the peer's.
    pub(crate) fn ratio(&mut self, row: &'static str, figure: Figure, ours: Lane, peer: Lane) {
        self.compare(row, figure, ours, Some(peer), None);
    }

    /// Adds a row with that ratio, after subtracting the `plain` lane from both.
    pub(crate) fn overhead(
        &mut self,
        row: &'static str,
        figure: Figure,
        [ours, peer, plain]: [Lane; 3],
    ) {
        self.compare(row, figure, ours, Some(peer), Some(plain));
    }

    /// Adds a row without a peer.
    pub(crate) fn alone(&mut self, row: &'static str, figure: Figure, ours: Lane) {
        self.compare(row, figure, ours, None, None);
    }

    fn compare(
        &mut self,
        row: &'static str,
        figure: Figure,
        ours: Lane,
        peer: Option<Lane>,
        plain: Option<Lane>,
    ) {
        if self.options.wants(row) {
            self.comparisons.push(Comparison {
                row,
                figure,
                ours,
                peer,
                plain,
            });
        }
    }

    /// Runs the lanes that rows need: one unmeasured round, then the measured rounds.
    pub(crate) fn run(mut self, rounds: usize) -> Vec<Finding> {
        if self.comparisons.is_empty() {
            return Vec::new();
        }
        let begun = Instant::now();
        let rounds = self.options.rounds(rounds);
        let mut batches = vec![Vec::with_capacity(rounds); self.lanes.len()];
        let used: Vec<_> = (0..self.lanes.len())
            .filter(|lane| {
                self.comparisons
                    .iter()
                    .any(|row| row.lanes().any(|one| one.0 == *lane))
            })
            .collect();
        for round in 0..=rounds {
            for turn in 0..used.len() {
                // Each round starts with a different lane, which averages out effects of the order.
                let lane = used[(turn + round) % used.len()];
                thread::sleep(REST);
                let batch = self.lanes[lane]();
                if round > 0 {
                    batches[lane].push(batch);
                }
            }
        }
        eprintln!("{}: {:.1} s", self.title, begun.elapsed().as_secs_f64());
        self.comparisons
            .iter()
            .map(|row| find(row, &batches))
            .collect()
    }
}

fn find(row: &Comparison, batches: &[Vec<Measured>]) -> Finding {
    let of = |lane: Lane, round: usize| batches[lane.0][round].get(row.figure);
    let reached = (0..batches[row.ours.0].len())
        .map(|round| {
            let plain = row.plain.map_or(0.0, |lane| of(lane, round));
            let peer = row.peer.map_or(1.0, |lane| of(lane, round) - plain);
            (of(row.ours, round) - plain) / peer
        })
        .collect();
    let side = |lane: Lane| Side::new(row.figure, &batches[lane.0]);
    Finding {
        row: row.row.to_owned(),
        figure: row.figure,
        reached,
        ours: side(row.ours),
        peer: row.peer.map(side),
    }
}
