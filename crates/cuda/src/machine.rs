//! The steps of a model, ready to run, and the memory that they run in.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use candor_arch::{NodeId, Op, Plan, StateSizes, fuse};
use candor_backend::paging::Paging;
use candor_backend::{LoadError, Model, OpenOptions};

use crate::buffer::{Arena, DevicePtr, Layout};
use crate::device::{Device, Fault, Graph, Pinned};
use crate::enqueue::buckets;
use crate::forward::{DECODE_ROWS_MAX, Forward, Launch};
use crate::ops;
use crate::outputs::{REPORT_BYTES, Source};
use crate::pace::Pace;
use crate::prepare::{Constants, Prepare, Scratch};
use crate::state::{DeviceStore, StatePlan};
use crate::steps::{StepLayout, Steps};
use crate::upload::Weights;
use crate::values::Values;

/// What is the same for every session of a model.
pub(crate) struct Base {
    pub(crate) device: Rc<Device>,
    pub(crate) model: Arc<Model>,
    pub(crate) weights: Weights,
    pub(crate) plan: Plan,
    pub(crate) replies: Replies,
}

/// How the steps of a token of a reply are launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replies {
    /// As one, captured when they were first needed.
    Captured,
    /// One after the other, as those of a prompt.
    Stepwise,
}

impl Base {
    /// The plan, and where the weights are to lie.
    pub(crate) fn new(device: Rc<Device>, model: Arc<Model>, replies: Replies) -> Self {
        Self {
            replies,
            device,
            weights: Weights::plan(&model),
            plan: fuse(&model.graph, ops::PATTERNS),
            model,
        }
    }
}

/// A step that is ready.
pub(crate) struct Ready {
    pub(crate) nodes: Vec<NodeId>,
    launch: Box<dyn Launch>,
}

impl Ready {
    /// Enqueues it.
    pub(crate) fn launch(&self, forward: &Forward<'_>) -> Result<(), Fault> {
        self.launch.launch(forward)
    }
}

/// Where the parts of a session's memory lie: offsets until there is memory.
#[derive(Clone, Copy)]
struct Places {
    values: DevicePtr,
    scratch: DevicePtr,
    constants: DevicePtr,
    steps: DevicePtr,
    reports: DevicePtr,
    state: DevicePtr,
}

/// Launches that a step takes at most: attention by splits, their sum, and a conversion.
const LAUNCHES_PER_STEP_MAX: usize = 3;

/// Memory of the card that the driver may keep for one captured launch with its parameters. No
/// document says how much that is; this is more than twice what such a launch is made of.
const LAUNCH_BYTES: u64 = 4096;

/// The memory of a session, laid out before any of it is taken.
pub(crate) struct Blueprint {
    options: OpenOptions,
    state: StatePlan,
    steps: StepLayout,
    values: Values,
    places: Places,
    work_bytes: usize,
}

impl Blueprint {
    /// Prepares every step once, to learn what it takes. `go_on` is asked between steps, since the
    /// driver translates kernels here.
    pub(crate) fn new(
        base: &Base,
        options: OpenOptions,
        go_on: &mut dyn FnMut() -> Result<(), LoadError>,
    ) -> Result<Self, LoadError> {
        let sizes = StateSizes {
            kv: options.kv,
            ctx_len: options.ctx_len,
            slots: options.slots_max,
            tokens: options.state_tokens,
            threads: 1,
        };
        let graph = &base.model.graph;
        let state = StatePlan::new(&graph.state, sizes);
        let entries = state.kinds().len() * options.slots_max * state.pages_max();
        let nowhere = DevicePtr(0);
        let mut this = Self {
            options,
            state,
            steps: StepLayout::new(options.slots_max, entries),
            values: Values::new(graph, &base.plan),
            places: Places {
                values: nowhere,
                scratch: nowhere,
                constants: nowhere,
                steps: nowhere,
                reports: nowhere,
                state: nowhere,
            },
            work_bytes: 0,
        };
        let mut scratch = Scratch::new(nowhere);
        let mut constants = Constants::default();
        this.prepare(base, &mut scratch, &mut constants, go_on)?;
        let mut layout = Layout::default();
        let mut place = |bytes| DevicePtr(layout.place(bytes) as u64);
        this.places = Places {
            values: place(this.values.bytes()),
            scratch: place(scratch.bytes()),
            constants: place(constants.bytes()),
            steps: place(this.steps.bytes()),
            reports: place(REPORT_BYTES),
            state: nowhere,
        };
        this.work_bytes = layout.bytes();
        Ok(this)
    }

    /// How the session is to be opened.
    pub(crate) fn options(&self) -> OpenOptions {
        self.options
    }

    /// Memory for all of it.
    pub(crate) fn bytes(&self) -> u64 {
        (self.work_bytes as u64).saturating_add(self.state.bytes() as u64)
    }

    /// Memory that the driver may take for captured launches: one graph for every bucket.
    pub(crate) fn graphs_bytes(&self, base: &Base) -> u64 {
        let rows = DECODE_ROWS_MAX.ilog2() as usize + 1;
        let graphs = rows * buckets(self.options.ctx_len).len();
        (graphs * base.plan.steps.len() * LAUNCHES_PER_STEP_MAX) as u64 * LAUNCH_BYTES
    }

    /// Looks up what every step needs, with the addresses that are known so far.
    fn prepare(
        &mut self,
        base: &Base,
        scratch: &mut Scratch,
        constants: &mut Constants,
        go_on: &mut dyn FnMut() -> Result<(), LoadError>,
    ) -> Result<Vec<Ready>, LoadError> {
        self.values.begin(self.places.values);
        let steps = base.plan.steps.iter().map(|step| {
            go_on()?;
            scratch.next_step();
            let mut prepare = Prepare {
                device: &base.device,
                graph: &base.model.graph,
                options: self.options,
                step: self.steps.ptrs(self.places.steps),
                weights: &base.weights,
                values: &mut self.values,
                state: &self.state,
                scratch,
                constants,
            };
            Ok(Ready {
                nodes: step.nodes.clone(),
                launch: ops::prepare(&mut prepare, step)?,
            })
        });
        steps.collect()
    }
}

/// Which captured launch fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bucket {
    pub(crate) rows: usize,
    pub(crate) context: usize,
}

/// Ready to run.
pub(crate) struct Machine {
    /// All steps but the last.
    pub(crate) before: Vec<Ready>,
    /// The last step: the logits.
    pub(crate) logits: Ready,
    /// Dotted name of the logits' node.
    pub(crate) logits_name: String,
    pub(crate) source: Source,
    pub(crate) steps: Steps,
    pub(crate) pace: Pace,
    pub(crate) graphs: HashMap<Bucket, Graph>,
    values: Values,
    pub(crate) kinds: usize,
    pub(crate) pages_max: usize,
    // Last: the others point into them.
    _state: Arena,
    _work: Arena,
}

impl Machine {
    /// Takes the memory and prepares every step in it.
    pub(crate) fn new(
        base: &Base,
        mut blueprint: Blueprint,
    ) -> Result<(Self, Paging<DeviceStore>), LoadError> {
        let device = &base.device;
        let work = Arena::new(device, blueprint.work_bytes)?;
        let state = Arena::new(device, blueprint.state.bytes())?;
        let at = |ptr: DevicePtr| work.ptr().plus(ptr.0 as usize);
        let places = Places {
            values: at(blueprint.places.values),
            scratch: at(blueprint.places.scratch),
            constants: at(blueprint.places.constants),
            steps: at(blueprint.places.steps),
            reports: at(blueprint.places.reports),
            state: state.ptr(),
        };
        blueprint.places = places;
        let tables = blueprint.steps.tables(places.steps);
        blueprint.state = blueprint.state.at(places.state, tables);
        let mut scratch = Scratch::new(places.scratch);
        let mut constants = Constants::at(places.constants);
        let mut go_on = || Ok(());
        let mut before = blueprint.prepare(base, &mut scratch, &mut constants, &mut go_on)?;
        send_constants(device, places.constants, &constants)?;
        let graph = &base.model.graph;
        let is_logits = |ready: &Ready| matches!(graph.node(ready.nodes[0]).op, Op::Logits { .. });
        let last = before.pop().filter(is_logits);
        let logits = last.ok_or_else(|| Fault::Lost {
            reason: String::from("the model's last step gives no logits"),
        })?;
        let node = logits.nodes[0];
        let options = blueprint.options;
        let source = Source::new(
            device,
            (blueprint.values.of(node), places.reports),
            blueprint.steps.ptrs(places.steps),
            graph.node(node).width,
        )?;
        let store = DeviceStore::new(device, &blueprint.state, places.state)?;
        let kinds = blueprint.state.kinds();
        let paging = Paging::new(store, kinds, options.slots_max, options.ctx_len);
        let this = Self {
            before,
            logits,
            logits_name: graph.node(node).name.clone(),
            source,
            steps: Steps::new(device, blueprint.steps, places.steps)?,
            pace: Pace::new(device)?,
            graphs: HashMap::new(),
            values: blueprint.values,
            kinds: kinds.len(),
            pages_max: blueprint.state.pages_max(),
            _state: state,
            _work: work,
        };
        Ok((this, paging))
    }

    /// Where a node's value lies.
    pub(crate) fn value(&self, node: NodeId) -> DevicePtr {
        self.values.of(node)
    }
}

/// Copies the constants over and waits for it.
fn send_constants(
    device: &Rc<Device>,
    base: DevicePtr,
    constants: &Constants,
) -> Result<(), Fault> {
    let mut pinned = Pinned::new(device, constants.bytes())?;
    for (at, values) in constants.kept() {
        let bytes = pinned.bytes_mut()[*at..].chunks_exact_mut(4);
        for (bytes, value) in bytes.zip(values) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
    }
    device.copy_in(base, &pinned, 0..constants.bytes())?;
    device.synchronize()
}
