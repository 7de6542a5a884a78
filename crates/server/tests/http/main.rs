//! The server from outside, over real connections, on a scripted engine that counts its forwards.

mod backend;
mod bad_input;
mod cancel;
mod client;
mod desk;
mod door;
mod loads;
mod protocols;
mod queue;
