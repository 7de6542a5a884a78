//! Everything that crosses to the window, and the only types that do.
//!
//! Inner types are not serializable on purpose: a change inside cannot change the window's
//! contract by accident. The TypeScript twin is generated from this folder.

mod conversation;
mod downloads;
mod error;
mod models;
mod replay;
mod reply;
mod search;
mod server;
mod settings;
mod status;
mod transfer;

pub use conversation::*;
pub use downloads::*;
pub use error::*;
pub use models::*;
pub use replay::*;
pub use reply::*;
pub use search::*;
pub use server::*;
pub use settings::*;
pub use status::*;
pub use transfer::*;
