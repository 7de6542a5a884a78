//! The window's commands, one call of the app each. `build.rs` lists them and
//! `capabilities/main.json` grants them; a command that is in neither cannot be called.
//!
//! They run on worker threads, because the store may be slow, except those that only set a flag:
//! a Stop must never wait behind other work.

pub(crate) mod chats;
pub(crate) mod conversations;
pub(crate) mod downloads;
pub(crate) mod models;
pub(crate) mod replies;
pub(crate) mod window;

use candor_app::wire::WireError;

type Answer<T> = Result<T, WireError>;
