//! What a person does with the window, in the window's own words.

use anyhow::Result;

use crate::window::Window;

/// How a reply stands on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// "writing", "stopped", "finished" and so on.
    pub state: String,
    /// What is to be read.
    pub text: String,
}

impl Window {
    /// x
    ///
    /// # Errors
    /// x
    pub fn reply(&self) -> Result<Option<Reply>> {
        Ok(None)
    }
}
