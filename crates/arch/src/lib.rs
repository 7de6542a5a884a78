//! Architectures as data: what a model file's tensors mean, written down once for every backend.
//!
//! [`build`] turns the index of a file into a [`Graph`] of coarse operations; [`check`] holds the
//! graph against the file before anything is allocated; [`footprint`] says what it will take; and
//! [`fuse`] groups nodes into the steps that a backend runs, and [`places`] says which of their
//! values may lie in the same place.
//!
//! What it deliberately does not do: it computes nothing, reads no tensor data and knows no
//! backend.
//!
//! Start with [`models::llama`], then [`Graph`].
#![forbid(unsafe_code)]

mod angles;
mod architecture;
pub mod blocks;
mod builder;
mod check;
mod display;
mod error;
mod features;
mod footprint;
mod fuse;
mod graph;
mod hparams;
mod keys;
pub mod models;
mod op;
mod places;
mod state;

pub use angles::RopeAngles;
pub use architecture::{Architecture, build, for_name};
pub use check::{Problem, check};
pub use error::ArchError;
pub use features::{Experts, Features, Recurrence, RopeScaling, Scales, Softcaps, Window};
pub use footprint::{Footprint, FootprintOptions, footprint};
pub use fuse::{Pattern, Plan, Step, fuse};
pub use graph::{
    Activation, DeltaNet, ExpertBiases, Graph, GraphBuilder, KeyOrder, Node, NodeId, Op, Rope,
    RopeStyle, Routing, RowsOf, Shares, StateLayout, Weight, WeightId, WeightKind,
};
pub use hparams::{HParams, limits};
pub use places::places;
pub use state::{CHECKPOINTS_MAX, FORWARD_ROWS_MAX, KvType, PAGE_TOKENS, StateSizes};
