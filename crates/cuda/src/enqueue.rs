//! One batch on its way to the card: cut into parts, each of which goes through the steps.

use std::rc::Rc;

use candor_arch::{Graph as ModelGraph, Op};
use candor_backend::paging::Paging;
use candor_backend::{Batch, CancelToken, Row, Rows, Run, SessionError, SlotId, Tap, Want, runs};

use crate::device::{Device, Fault, Graph, Pinned};
use crate::forward::{DECODE_ROWS_MAX, Forward, LOGITS_ROWS_MAX, Path};
use crate::machine::{Bucket, Machine, Ready, Replies};
use crate::outputs::Outputs;
use crate::prepare::ROWS_MAX;
use crate::state::DeviceStore;
use crate::steps::Part;

/// The smallest context for which decode launches are captured; the next is four times as large,
/// and so on.
const CONTEXT_BUCKET_MIN: usize = 1024;

/// Why a batch was not enqueued to its end.
pub(crate) enum Ended {
    Cancelled,
    Failed(SessionError),
}

impl From<Fault> for Ended {
    fn from(fault: Fault) -> Self {
        Self::Failed(fault.into())
    }
}

impl From<SessionError> for Ended {
    fn from(error: SessionError) -> Self {
        Self::Failed(error)
    }
}

/// A batch under way.
pub(crate) struct Enqueue<'a> {
    pub(crate) device: &'a Rc<Device>,
    pub(crate) graph: &'a ModelGraph,
    pub(crate) replies: Replies,
    pub(crate) machine: &'a mut Machine,
    pub(crate) paging: &'a Paging<DeviceStore>,
    pub(crate) outputs: &'a mut Outputs,
    pub(crate) rows: &'a mut Rows,
    /// The least context that a few rows are computed for.
    pub(crate) way: usize,
    pub(crate) cancel: &'a CancelToken,
}

/// Rows whose results are wanted, by their place in the part.
type Wanted = Vec<(usize, Want)>;

impl Enqueue<'_> {
    /// Enqueues all of it. Every node is shown to `tap`, which means waiting for each step.
    pub(crate) fn batch(
        &mut self,
        batch: &Batch,
        mut tap: Option<&mut dyn Tap>,
    ) -> Result<(), Ended> {
        let path = match batch.rows.len() <= DECODE_ROWS_MAX {
            true => Path::Decode,
            false => Path::Prefill,
        };
        let slots = self.paging.slots();
        let position = |slot| self.paging.position(SlotId(slot));
        let mut positions: Vec<usize> = (0..slots).map(position).collect();
        let mut written = vec![false; slots];
        for rows in batch.rows.chunks(ROWS_MAX) {
            self.go_on()?;
            let runs = runs(rows, &mut positions);
            let wanted = wanted(rows);
            self.send(rows, &runs, &wanted, &mut written)?;
            let reached = runs.iter().map(|run| run.first_position + run.rows.len());
            let context = reached.max().unwrap_or(0);
            match (path, &mut tap, self.replies) {
                // Without a result there is nothing to be had from a graph of its own, which nobody
                // would have judged.
                (Path::Decode, None, Replies::Captured) if !wanted.is_empty() => {
                    self.decode(rows.len(), context, &wanted)?;
                }
                (path, tap, _) => {
                    let part = (path, rows.len(), context, &runs[..]);
                    let tap = tap.as_mut().map(|tap| &mut **tap as &mut dyn Tap);
                    self.steps(part, &wanted, tap)?;
                }
            }
        }
        self.outputs.end()?;
        Ok(())
    }

    fn go_on(&self) -> Result<(), Ended> {
        match self.cancel.is_cancelled() {
            true => Err(Ended::Cancelled),
            false => Ok(()),
        }
    }

    /// Enqueues what the kernels read about the rows.
    fn send(
        &mut self,
        rows: &[Row],
        runs: &[Run],
        wanted: &Wanted,
        written: &mut [bool],
    ) -> Result<(), Fault> {
        let pages_max = self.machine.pages_max;
        let slots = self.paging.slots();
        let mut copies: Vec<(SlotId, usize, usize)> = Vec::new();
        for run in runs {
            if copies.iter().any(|(slot, ..)| *slot == run.slot) {
                continue;
            }
            let live = self.paging.store().live(run.slot.0);
            let next = 1 - live;
            let first = if written[run.slot.0] { next } else { live };
            written[run.slot.0] = true;
            copies.push((run.slot, first, next));
            for kind in 0..self.machine.kinds {
                let first = (kind * slots + run.slot.0) * pages_max;
                let pages = self.paging.pages(kind, run.slot);
                self.machine.steps.set_pages(first, pages, pages_max);
            }
        }
        let first_group = &wanted[..wanted.len().min(LOGITS_ROWS_MAX)];
        self.machine.steps.send(&Part {
            rows,
            runs,
            copies: &copies,
            wanted: &tops(first_group),
        })
    }

    /// A few rows: all launches are one, captured when they were first needed.
    fn decode(&mut self, rows: usize, context: usize, wanted: &Wanted) -> Result<(), Ended> {
        let rows = rows.next_power_of_two();
        let context = self.bucket_of(context);
        let bucket = Bucket { rows, context };
        let forward = Forward {
            device: self.device,
            path: Path::Decode,
            rows,
            context,
            wanted: rows,
            runs: &[],
        };
        let machine = &mut *self.machine;
        if !machine.graphs.contains_key(&bucket) {
            let (before, logits, source) = (&machine.before, &machine.logits, &machine.source);
            let captured = Graph::capture(self.device, || {
                before.iter().try_for_each(|step| step.launch(&forward))?;
                logits.launch(&forward)?;
                source.report(self.device, rows)
            })?;
            machine.graphs.insert(bucket, captured);
        }
        machine.graphs[&bucket].launch()?;
        self.fetch(wanted)?;
        Ok(())
    }

    /// Many rows, or rows that are to be shown: step by step.
    fn steps(
        &mut self,
        (path, n_rows, context, runs): (Path, usize, usize, &[Run]),
        wanted: &Wanted,
        mut tap: Option<&mut dyn Tap>,
    ) -> Result<(), Ended> {
        let rows = match path {
            Path::Decode => n_rows.next_power_of_two(),
            Path::Prefill => n_rows,
        };
        let mut forward = Forward {
            device: self.device,
            path,
            rows,
            context: match path {
                Path::Decode => self.bucket_of(context),
                Path::Prefill => context,
            },
            wanted: 0,
            runs: match path {
                Path::Decode => &[],
                Path::Prefill => runs,
            },
        };
        for step in 0..self.machine.before.len() {
            self.go_on()?;
            self.machine.before[step].launch(&forward)?;
            self.machine.pace.step()?;
            if let Some(tap) = &mut tap {
                self.show(&self.machine.before[step], n_rows, &mut **tap)?;
            }
        }
        for (group_idx, group) in wanted.chunks(LOGITS_ROWS_MAX).enumerate() {
            self.go_on()?;
            if group_idx > 0 {
                self.machine.steps.send_wanted(&tops(group))?;
            }
            forward.wanted = match path {
                Path::Decode => rows,
                Path::Prefill => group.len(),
            };
            self.machine.logits.launch(&forward)?;
            self.machine.source.report(self.device, forward.wanted)?;
            self.fetch(group)?;
        }
        Ok(())
    }

    /// The context for which the launches of such a step are captured.
    fn bucket_of(&self, context: usize) -> usize {
        bucket_of(context.max(self.way), self.paging.ctx_len())
    }

    /// Enqueues the copies of results, after those before were taken.
    fn fetch(&mut self, wanted: &[(usize, Want)]) -> Result<(), Ended> {
        if wanted.is_empty() {
            return Ok(());
        }
        let (source, name) = (&self.machine.source, &self.machine.logits_name);
        if self.outputs.are_under_way() {
            self.outputs.take(source, name, &mut self.rows.outputs)?;
        }
        let wants = wanted.iter().map(|(_, want)| *want).collect();
        self.outputs.fetch(source, wants)?;
        Ok(())
    }

    /// Shows what the nodes of a step gave.
    fn show(&self, step: &Ready, n_rows: usize, tap: &mut dyn Tap) -> Result<(), Fault> {
        for id in &step.nodes {
            let node = self.graph.node(*id);
            if matches!(node.op, Op::Logits { .. }) {
                continue;
            }
            let bytes = n_rows * node.width * 4;
            let pinned = Pinned::new(self.device, bytes)?;
            self.device
                .copy_out(&pinned, 0..bytes, self.machine.value(*id))?;
            self.device.synchronize()?;
            let values = bytemuck::cast_slice(pinned.bytes());
            tap.output(&node.name, n_rows, node.width, values);
        }
        Ok(())
    }
}

/// The rows of which something is wanted.
fn wanted(rows: &[Row]) -> Wanted {
    let wants = rows.iter().map(|row| row.want).enumerate();
    wants.filter(|(_, want)| *want != Want::Nothing).collect()
}

/// The rows, and how many of their largest logits are wanted.
fn tops(wanted: &[(usize, Want)]) -> Vec<(usize, usize)> {
    let top = |want| match want {
        Want::Nothing | Want::Logits | Want::Hidden => 0,
        // The log of the sum of exponentials comes with the largest.
        Want::Top { k } => usize::max(k, 1),
    };
    wanted
        .iter()
        .map(|(row, want)| (*row, top(*want)))
        .collect()
}

/// The contexts for which launches of a few rows are captured.
pub(crate) fn buckets(ctx_len: usize) -> Vec<usize> {
    let all = std::iter::successors(Some(CONTEXT_BUCKET_MIN), |bucket| Some(4 * bucket));
    let shorter = all.take_while(|bucket| *bucket < ctx_len);
    shorter.chain([ctx_len]).collect()
}

/// The one of them for a context.
fn bucket_of(context: usize, ctx_len: usize) -> usize {
    let fits = |bucket: &usize| *bucket >= context;
    buckets(ctx_len).into_iter().find(fits).unwrap_or(ctx_len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_has_the_smallest_bucket_that_holds_it() {
        let check = |context, ctx_len, expected| {
            assert_eq!(
                bucket_of(context, ctx_len),
                expected,
                "{context} of {ctx_len}"
            );
        };
        check(1, 100_000, 1024);
        check(1024, 100_000, 1024);
        check(1025, 100_000, 4096);
        check(4097, 100_000, 16_384);
        check(20_000, 30_000, 30_000);
        check(30_000, 30_000, 30_000);
        check(7, 20, 20);
        assert_eq!(buckets(4096), [1024, 4096]);
        assert_eq!(buckets(20_000), [1024, 4096, 16_384, 20_000]);
    }
}
