//! The checksum of headers: CRC-32 of IEEE 802.3, as in zlib.

/// Of some pieces, as if they were one.
pub(super) fn crc32(pieces: &[&[u8]]) -> u32 {
    let mut crc = u32::MAX;
    for byte in pieces.iter().copied().flatten() {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            let polynomial = if crc & 1 == 1 { 0xEDB8_8320 } else { 0 };
            crc = (crc >> 1) ^ polynomial;
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_standard_comes_out() {
        assert_eq!(crc32(&[b"12345", b"6789"]), 0xCBF4_3926);
    }
}
