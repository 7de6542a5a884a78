//! Architectures as data (being written).
#![forbid(unsafe_code)]
/// What to compute.
#[derive(Debug)]
pub struct Graph;
/// Why a file does not fit.
#[derive(Debug)]
pub struct Problem;
impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("problem")
    }
}
