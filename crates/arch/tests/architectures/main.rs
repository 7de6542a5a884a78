//! Architectures from the outside: indices in, graphs and refusals out.

mod check;
mod fuse;
mod graphs;
mod hparams;
mod tiny;
