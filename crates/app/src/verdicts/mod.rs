//! What was found out about a model on a device, kept for the next start.

#![expect(dead_code, reason = "loads ask for it from the next step on")]

mod identity;
mod store;
