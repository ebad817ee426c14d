//! Decompression of LZNT1 ([MS-XCA] 2.5).

/// The decompressed size of a chunk, in bytes.
const CHUNK: usize = 4096;
/// A flag in a chunk's header: the chunk is compressed.
const PACKED: u16 = 0x8000;
/// The length in a chunk's header: that of the chunk with its header, minus 3.
const LEN: u16 = 0x0fff;

/// Decompresses chunks into `out`, and fills the rest with zeros. Returns false for invalid chunks.
/// The content of `out` is then unspecified.
pub(crate) fn unpack(packed: &[u8], out: &mut [u8]) -> bool {
    let mut rest = packed;
    let mut places = out.chunks_mut(CHUNK);
    while let Some((&head, after)) = rest.split_first_chunk::<2>() {
        let head = u16::from_le_bytes(head);
        if head == 0 {
            break;
        }
        // A unit ends at a cluster boundary, but what follows the last chunk is not compressed
        // data.
        let Some(place) = places.next() else { break };
        let len = usize::from(head & LEN) + 1;
        let Some((chunk, more)) = after.split_at_checked(len) else {
            return false;
        };
        rest = more;
        let filled = match head & PACKED {
            0 => copy(chunk, place),
            _ => unpack_chunk(chunk, place),
        };
        let Some(filled) = filled else { return false };
        place.get_mut(filled..).unwrap_or_default().fill(0);
    }
    for place in places {
        place.fill(0);
    }
    true
}

fn copy(chunk: &[u8], place: &mut [u8]) -> Option<usize> {
    place.get_mut(..chunk.len())?.copy_from_slice(chunk);
    Some(chunk.len())
}

/// Decompresses a chunk. Returns the decompressed length.
fn unpack_chunk(chunk: &[u8], place: &mut [u8]) -> Option<usize> {
    let (mut rest, mut done) = (chunk, 0usize);
    while let Some((&flags, after)) = rest.split_first() {
        rest = after;
        for bit in 0..8 {
            if rest.is_empty() {
                return Some(done);
            }
            if flags >> bit & 1 == 0 {
                let (&byte, after) = rest.split_first()?;
                *place.get_mut(done)? = byte;
                (rest, done) = (after, done + 1);
                continue;
            }
            let (&token, after) = rest.split_first_chunk::<2>()?;
            rest = after;
            done = repeat(u16::from_le_bytes(token), place, done)?;
        }
    }
    Some(done)
}

/// Copies bytes that were decompressed before, as a token says. Its high bits are the distance
/// minus 1, its low bits the length minus 3. The distance has as many bits as `done - 1`, at least
/// four.
fn repeat(token: u16, place: &mut [u8], done: usize) -> Option<usize> {
    let last = done.checked_sub(1)?;
    let bits = (usize::BITS - last.leading_zeros()).clamp(4, 12);
    let back = usize::from(token >> (16 - bits)) + 1;
    let len = usize::from(token & (0xffff >> bits)) + 3;
    let from = done.checked_sub(back)?;
    let end = done.checked_add(len).filter(|end| *end <= place.len())?;
    for (to, from) in (done..end).zip(from..) {
        let byte = *place.get(from)?;
        *place.get_mut(to)? = byte;
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of [MS-XCA] 3.3.
    const PACKED: &[u8] = &[
        0x38, 0xb0, 0x88, 0x46, 0x23, 0x20, 0x00, 0x20, 0x47, 0x20, 0x41, 0x00, 0x10, 0xa2, 0x47,
        0x01, 0xa0, 0x45, 0x20, 0x44, 0x00, 0x08, 0x45, 0x01, 0x50, 0x79, 0x00, 0xc0, 0x45, 0x20,
        0x05, 0x24, 0x13, 0x88, 0x05, 0xb4, 0x02, 0x4a, 0x44, 0xef, 0x03, 0x58, 0x02, 0x8c, 0x09,
        0x16, 0x01, 0x48, 0x45, 0x00, 0xbe, 0x00, 0x9e, 0x00, 0x04, 0x01, 0x18, 0x90, 0x00,
    ];

    #[test]
    fn the_specifications_example_comes_out() {
        let plain = b"F# F# G A A G F# E D D E F# F# E E F# F# G A A G F# E D D E F# E D D E E F# D E F# G F# D E F# G F# E D E A F# F# G A A G F# E D D E F# E D D\0";
        let mut out = vec![1; 8192];
        assert!(unpack(PACKED, &mut out));
        assert_eq!(
            out[..plain.len()].escape_ascii().to_string(),
            plain.escape_ascii().to_string()
        );
        assert!(out[plain.len()..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn no_bytes_do_harm() {
        let mut out = vec![0; 8192];
        for bytes in [
            &[0xff, 0xff, 1][..],
            &[0x03, 0xb0, 0x01, 0x00, 0x00, 0x00],
            &[0x02, 0xb0, 0x01, 0x00, 0x00],
            &[0x02, 0xb0, 0x02, 0x41, 0x00],
        ] {
            assert!(!unpack(bytes, &mut out), "{bytes:x?}");
        }
        for at in 0..PACKED.len() {
            for bit in 0..8 {
                let mut bytes = PACKED.to_vec();
                bytes[at] ^= 1 << bit;
                unpack(&bytes, &mut out);
            }
        }
        assert!(unpack(&[], &mut out) && out.iter().all(|byte| *byte == 0));
    }
}
