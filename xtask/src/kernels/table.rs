//! The Rust table that puts the PTX into the program.

use std::fmt::Write;

use super::compile::{file_name, flavour_there};
use super::manifest::Manifest;
use super::modules::FLAVOURS;

/// The table of the manifest's modules, as rustfmt leaves it.
pub(super) fn table(manifest: &Manifest) -> String {
    let mut text = String::from(
        "//! Every kernel module in its flavours, sorted by name.\n\
         //! Written by `cargo xtask kernels`; not to be edited.\n\n\
         use super::Module;\n\n\
         pub(super) const MODULES: &[Module] = &[\n",
    );
    for (name, entry) in &manifest.modules {
        write!(text, "    Module {{\n        name: \"{name}\",\n").expect("a string takes all");
        for (flavour, _) in FLAVOURS {
            let file = file_name(name, flavour_there(&entry.ptx, flavour));
            writeln!(
                text,
                "        {flavour}: include_str!(\"../../../../kernels/ptx/{file}\"),"
            )
            .expect("a string takes all");
        }
        text.push_str("    },\n");
    }
    text.push_str("];\n");
    // Without a module rustfmt would close it on its line.
    text.replace("&[\n];", "&[];")
}
