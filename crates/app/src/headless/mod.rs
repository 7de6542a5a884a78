//! What the command line needs without a store: inspect, tokenize, render, logits, generate, bench.
//!
//! Being written by helper `cli` (lead's decision at 18:37): helper `app` leaves this folder alone.
