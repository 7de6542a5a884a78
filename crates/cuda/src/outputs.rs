//! The way of the results back: logits, and what is told of them, through pinned memory.

use std::rc::Rc;

use candor_backend::{RowOutput, SessionError, Want};

use crate::buffer::DevicePtr;
use crate::device::{Device, Event, Fault, Pinned};
use crate::forward::LOGITS_ROWS_MAX;
use crate::launch::{Args, Grid, Kernel};
use crate::prepare::StepPtrs;

/// The largest logits of a row that a session gives by itself. Samplers look at fewer.
pub(crate) const TOP_MAX: usize = 64;

/// Threads of a block of the kernel `top_report`.
const TOP_THREADS: u32 = 512;

/// Words of the kernel's `struct Report`: whether all logits are numbers, the log of the sum of
/// their exponentials, ids, values.
const REPORT_WORDS: usize = 2 + 2 * TOP_MAX;

/// Memory on the card for the reports of one group of rows.
pub(crate) const REPORT_BYTES: usize = LOGITS_ROWS_MAX * REPORT_WORDS * 4;

/// Where the logits of a group of rows are, and the kernel that reports on them.
pub(crate) struct Source {
    kernel: Kernel,
    logits: DevicePtr,
    reports: DevicePtr,
    step: StepPtrs,
    pub(crate) vocabulary: usize,
}

impl Source {
    pub(crate) fn new(
        device: &Device,
        (logits, reports): (DevicePtr, DevicePtr),
        step: StepPtrs,
        vocabulary: usize,
    ) -> Result<Self, Fault> {
        Ok(Self {
            kernel: device.kernel("top", "top_report")?,
            logits,
            reports,
            step,
            vocabulary,
        })
    }

    /// Enqueues the reports on so many rows.
    pub(crate) fn report(&self, device: &Device, rows: usize) -> Result<(), Fault> {
        let args = Args::new()
            .ptr(self.logits)
            .size(self.vocabulary)
            .ptr(self.step.want)
            .ptr(self.step.top)
            .ptr(self.reports);
        device.launch(&self.kernel, Grid::of(rows, TOP_THREADS), args)
    }
}

/// Where the results of one forward arrive. Used again for the next.
pub(crate) struct Outputs {
    device: Rc<Device>,
    arrived: Event,
    reports: Pinned,
    /// As long as was needed so far.
    logits: Option<Pinned>,
    /// What is on its way.
    wants: Vec<Want>,
}

impl Outputs {
    pub(crate) fn new(device: &Rc<Device>) -> Result<Self, Fault> {
        Ok(Self {
            device: Rc::clone(device),
            arrived: Event::new(device)?,
            reports: Pinned::new(device, REPORT_BYTES)?,
            logits: None,
            wants: Vec::new(),
        })
    }

    /// Marks the end of the forward in the stream.
    pub(crate) fn end(&self) -> Result<(), Fault> {
        self.arrived.record()
    }

    /// Enqueues the copies of a group's results.
    pub(crate) fn fetch(&mut self, source: &Source, wants: Vec<Want>) -> Result<(), Fault> {
        let row_bytes = source.vocabulary * 4;
        let rows = wants.len();
        let reports = rows * REPORT_WORDS * 4;
        self.device
            .copy_out(&self.reports, 0..reports, source.reports)?;
        // Rows without logits in between are copied along: a copy costs more than its bytes.
        let last = wants.iter().rposition(|want| *want == Want::Logits);
        if let Some(last) = last {
            let bytes = 0..(last + 1) * row_bytes;
            let logits = self.room(last + 1, row_bytes)?;
            logits.device().copy_out(logits, bytes, source.logits)?;
        }
        self.wants = wants;
        self.end()
    }

    /// Pinned memory for so many rows.
    fn room(&mut self, rows: usize, row_bytes: usize) -> Result<&Pinned, Fault> {
        let held = self.logits.take();
        let pinned = match held.filter(|pinned| pinned.bytes().len() >= rows * row_bytes) {
            Some(pinned) => pinned,
            None => Pinned::new(&self.device, rows * row_bytes)?,
        };
        Ok(self.logits.insert(pinned))
    }

    /// Whether something was fetched and not taken.
    pub(crate) fn are_under_way(&self) -> bool {
        !self.wants.is_empty()
    }

    /// What is on its way is of no use.
    pub(crate) fn forget(&mut self) {
        self.wants.clear();
    }

    /// Waits for the forward, or for what was fetched so far, and appends what arrived.
    pub(crate) fn take(
        &mut self,
        source: &Source,
        node: &str,
        into: &mut Vec<RowOutput>,
    ) -> Result<(), SessionError> {
        self.arrived.wait()?;
        let reports: &[u32] = bytemuck::cast_slice(self.reports.bytes());
        let logits: &[f32] = match &self.logits {
            Some(pinned) => bytemuck::cast_slice(pinned.bytes()),
            None => &[],
        };
        for (i, want) in std::mem::take(&mut self.wants).into_iter().enumerate() {
            let report = &reports[i * REPORT_WORDS..][..REPORT_WORDS];
            if report[0] != 1 {
                return Err(SessionError::NotFinite {
                    node: String::from(node),
                });
            }
            match want {
                // Nobody asks for what is not offered.
                Want::Nothing | Want::Hidden => {}
                Want::Logits => {
                    let row = &logits[i * source.vocabulary..][..source.vocabulary];
                    into.push(RowOutput::Logits(row.to_vec()));
                }
                Want::Top { k } => into.push(top(report, k)),
            }
        }
        Ok(())
    }
}

fn top(report: &[u32], k: usize) -> RowOutput {
    let (ids, values) = report[2..].split_at(TOP_MAX);
    let best = ids.iter().zip(values).take(k);
    RowOutput::Top {
        best: best
            .map(|(id, value)| (*id, f32::from_bits(*value)))
            .collect(),
        lse: f32::from_bits(report[1]),
    }
}
