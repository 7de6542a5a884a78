//! Everything that crosses to the window, and the only types that do.
//!
//! Inner types are not serializable on purpose: a change inside cannot change the window's
//! contract by accident. The TypeScript twin is generated from this folder.

mod conversation;
mod downloads;
mod error;
mod models;
mod reply;
mod settings;
mod status;

pub use conversation::*;
pub use downloads::*;
pub use error::*;
pub use models::*;
pub use reply::*;
pub use settings::*;
pub use status::*;
