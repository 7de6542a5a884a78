//! Every table that this machine can run, against the scalar truth.

use super::check::first_miss;
use super::kernels::tables;

#[test]
fn every_table_passes_its_check() {
    for (kernels, present) in tables() {
        if present {
            assert_eq!(first_miss(kernels), None, "{}", kernels.name);
        }
    }
}
