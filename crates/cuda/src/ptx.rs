//! The kernels as text, in the form that the driver translates for its card.
//!
//! A module is there for two generations of cards, or once where the later one gains nothing; what
//! is made for the later one runs on all that came after.

mod table;
#[cfg(test)]
mod tests;

use std::sync::OnceLock;

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

/// Tells these kernels from those of another version (FNV-1a over all of them).
pub(crate) fn fingerprint() -> String {
    static HASH: OnceLock<u64> = OnceLock::new();
    let hash = HASH.get_or_init(|| {
        let texts = MODULES.iter().flat_map(|it| [it.name, it.sm75, it.sm80]);
        texts
            .flat_map(str::bytes)
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
            })
    });
    format!("{hash:016x}")
}
