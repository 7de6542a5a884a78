//! Real models, where this machine has them.
