//! The window's copy of the wire types is that of this version.
#![cfg(feature = "bindings")]

use std::fs;
use std::path::Path;

#[test]
fn the_committed_bindings_are_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui/src/platform/bindings.ts");
    let committed = fs::read_to_string(&path).unwrap();
    assert!(
        committed == candor_app::bindings::typescript(),
        "{} is not that of the wire types; write it again with `cargo xtask bindings`",
        path.display(),
    );
}
