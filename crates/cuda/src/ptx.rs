//! The kernels as text, in the form that the driver translates for its card.
//!
//! Each module is there for two generations of cards; the later one runs on all that came after.

mod table;
#[cfg(test)]
mod tests;

use table::MODULES;

/// The kernels of one operation, for one storage type where they depend on it.
struct Module {
    name: &'static str,
    sm75: &'static str,
    sm80: &'static str,
}

/// The first compute capability whose cards run the later form.
const LATER: (i32, i32) = (8, 0);

/// The text of a module for a card of this compute capability.
pub(crate) fn text(module: &str, capability: (i32, i32)) -> Option<&'static str> {
    let at = MODULES.binary_search_by_key(&module, |module| module.name);
    let module = &MODULES[at.ok()?];
    Some(if capability < LATER {
        module.sm75
    } else {
        module.sm80
    })
}
