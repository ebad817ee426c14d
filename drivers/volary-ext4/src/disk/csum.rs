//! Checksums: CRC-32C of metadata (checksums.rst), CRC-16 of group descriptors without
//! metadata_csum, CRC-32 of journals of the first version.

/// CRC-32C as Linux has it: begun with `seed`, and neither turned over at the start nor at the end.
pub(crate) fn crc32c(seed: u32, bytes: &[u8]) -> u32 {
    !crc32c::crc32c_append(!seed, bytes)
}

/// CRC-16 (polynomial 0x8005, bits reversed) begun with `seed`.
pub(crate) fn crc16(seed: u16, bytes: &[u8]) -> u16 {
    let step = |crc: u16, _| match crc & 1 {
        0 => crc >> 1,
        _ => crc >> 1 ^ 0xa001,
    };
    let byte = |crc: u16, byte: &u8| (0..8).fold(crc ^ u16::from(*byte), step);
    bytes.iter().fold(seed, byte)
}

/// CRC-32 (polynomial 0x04c11db7), highest bit first, begun with `seed`.
pub(crate) fn crc32_be(seed: u32, bytes: &[u8]) -> u32 {
    let byte = |crc: u32, byte: &u8| {
        let at = (crc >> 24) as u8 ^ *byte;
        crc << 8 ^ CRC32_BE.get(usize::from(at)).copied().unwrap_or(0)
    };
    bytes.iter().fold(seed, byte)
}

#[expect(
    clippy::indexing_slicing,
    reason = "computed when it is compiled: an index past the end would not compile"
)]
const CRC32_BE: [u32; 256] = {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let mut crc = (at as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            crc = crc << 1 ^ if crc >> 31 == 1 { 0x04c1_1db7 } else { 0 };
            bit += 1;
        }
        table[at] = crc;
        at += 1;
    }
    table
};

/// Returns whether `bytes` have the checksum `stored`, which stands at `at` in them and counts as zeros.
pub(crate) fn holds(seed: u32, bytes: &[u8], at: usize, stored: u32) -> bool {
    let (before, rest) = bytes.split_at_checked(at).unwrap_or((bytes, &[]));
    let after = rest.get(4..).unwrap_or_default();
    let crc = crc32c(crc32c(crc32c(seed, before), &[0; 4]), after);
    crc == stored
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_sums() {
        // The check values of the catalogue of CRCs, for "123456789".
        let digits = b"123456789";
        assert_eq!(!crc32c(!0, digits), 0xe306_9283);
        assert_eq!(crc16(0, digits), 0xbb3d);
        assert_eq!(crc32_be(!0, digits), !0xfc89_1918);
    }
}
