//! Which driver takes which PTX.

/// The newest PTX of each CUDA release, from the release notes of NVIDIA's "Parallel Thread
/// Execution ISA". A driver of that release translates no newer one.
const RELEASES: [(i32, (u32, u32)); 19] = [
    (11_000, (7, 0)),
    (11_010, (7, 1)),
    (11_020, (7, 2)),
    (11_030, (7, 3)),
    (11_040, (7, 4)),
    (11_050, (7, 5)),
    (11_060, (7, 6)),
    (11_070, (7, 7)),
    (11_080, (7, 8)),
    (12_000, (8, 0)),
    (12_010, (8, 1)),
    (12_020, (8, 2)),
    (12_030, (8, 3)),
    (12_040, (8, 4)),
    (12_050, (8, 5)),
    (12_070, (8, 6)),
    (12_080, (8, 7)),
    (12_090, (8, 8)),
    (13_000, (9, 0)),
];

/// The newest PTX that a driver of this CUDA version translates.
pub(crate) fn newest_ptx(driver: i32) -> (u32, u32) {
    let fits = RELEASES
        .iter()
        .rev()
        .find(|(release, _)| *release <= driver);
    fits.map_or((6, 0), |(_, ptx)| *ptx)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_takes_the_ptx_of_its_release_and_older() {
        for (driver, expected) in [
            (10_020, (6, 0)),
            (11_080, (7, 8)),
            (12_000, (8, 0)),
            (12_040, (8, 4)),
            (12_060, (8, 5)),
            (13_020, (9, 0)),
        ] {
            assert_eq!(newest_ptx(driver), expected, "{driver}");
        }
    }
}
