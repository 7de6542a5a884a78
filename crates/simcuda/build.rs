//! Gives the library the name that programs ask the loader for.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Once it is loaded under its own file name, the loader answers a request for `libcuda.so`
    // with it. The file must never bear that name: cargo puts its folder on the library path, and
    // every program that cargo starts would find a card. Other systems' linkers have no such flag,
    // and the crate is empty there.
    #[cfg(target_os = "linux")]
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so");
}
