//! WTF-8: an encoding of UTF-16 as bytes that can also hold lone surrogates.

/// A code point of UTF-16: a character or a lone surrogate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    Char(char),
    Surrogate(u16),
}

/// The code points of WTF-8 bytes; `None` stands for invalid bytes.
struct Points<'a>(&'a [u8]);

impl Iterator for Points<'_> {
    type Item = Option<Point>;

    fn next(&mut self) -> Option<Self::Item> {
        let &first = self.0.first()?;
        let len = match first {
            0..=0x7f => 1,
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            _ => 4,
        };
        let Some((head, rest)) = self.0.split_at_checked(len) else {
            self.0 = &[];
            return Some(None);
        };
        self.0 = rest;
        if let &[0xed, b @ 0xa0..=0xbf, c @ 0x80..=0xbf] = head {
            let unit = 0xd800 | u16::from(b & 0x1f) << 6 | u16::from(c & 0x3f);
            return Some(Some(Point::Surrogate(unit)));
        }
        let c = std::str::from_utf8(head)
            .ok()
            .and_then(|text| text.chars().next());
        Some(c.map(Point::Char))
    }
}

/// Writes WTF-8 bytes as UTF-16 into `out` and returns their count, or `None`
/// if `name` is not WTF-8 (a surrogate pair must be one character of four
/// bytes) or does not fit.
pub fn to_utf16(name: &[u8], out: &mut [u16]) -> Option<Result<usize, TooLong>> {
    if name.is_ascii() {
        let Some(place) = out.get_mut(..name.len()) else {
            return Some(Err(TooLong));
        };
        for (unit, &byte) in place.iter_mut().zip(name) {
            *unit = byte.into();
        }
        return Some(Ok(name.len()));
    }
    let mut len = 0;
    let mut fits = true;
    let mut after_high = false;
    for point in Points(name) {
        let mut units = [0; 2];
        let (units, high) = match point? {
            Point::Char(c) => (&*c.encode_utf16(&mut units), false),
            Point::Surrogate(s) if after_high && s >= 0xdc00 => return None,
            Point::Surrogate(s) => {
                units = [s, 0];
                (units.get(..1)?, s < 0xdc00)
            }
        };
        after_high = high;
        match out.get_mut(len..len + units.len()) {
            Some(place) => place.copy_from_slice(units),
            None => fits = false,
        }
        len += units.len();
    }
    Some(if fits { Ok(len) } else { Err(TooLong) })
}

/// The name has more UTF-16 units than the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// Appends UTF-16 to `out` as WTF-8. Distinct sequences of units give distinct bytes.
pub fn from_utf16(units: &[u16], out: &mut Vec<u8>) {
    if units.iter().all(|&u| u < 0x80) {
        // All units are ASCII, so the cast cuts nothing off.
        out.extend(units.iter().map(|&u| u as u8));
        return;
    }
    for point in char::decode_utf16(units.iter().copied()) {
        match point {
            Ok(c) if c.is_ascii() => out.push(c as u8),
            Ok(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(lone) => {
                let s = lone.unpaired_surrogate();
                let [b, c] = [(s >> 6 & 0x3f) as u8 | 0x80, (s & 0x3f) as u8 | 0x80];
                out.extend_from_slice(&[0xed, b, c]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_split_pair_is_no_name_but_a_lone_half_is() {
        let mut units = [0; 255];
        assert_eq!(to_utf16(b"\xed\xa0\xbd\xed\xb8\x80", &mut units), None);
        assert_eq!(
            to_utf16(b"\xed\xb8\x80\xed\xa0\xbd", &mut units),
            Some(Ok(2))
        );
        assert_eq!(units[..2], [0xde00, 0xd83d]);
        assert_eq!(to_utf16(b"\xff", &mut units), None);
        assert_eq!(to_utf16(b"a\xc3", &mut units), None);
        assert_eq!(to_utf16(&[b'x'; 256], &mut units), Some(Err(TooLong)));
        assert_eq!(
            to_utf16("ü".repeat(256).as_bytes(), &mut units),
            Some(Err(TooLong))
        );
    }

    proptest! {
        #[test]
        fn utf_16_comes_back_from_bytes(units in proptest::collection::vec(any::<u16>(), 0..255)) {
            let mut bytes = Vec::new();
            from_utf16(&units, &mut bytes);
            let mut back = [0; 255];
            let len = to_utf16(&bytes, &mut back).unwrap().unwrap();
            prop_assert_eq!(&back[..len], &units[..]);
        }

        #[test]
        fn any_bytes_are_refused_or_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut units = [0; 255];
            if let Some(Ok(len)) = to_utf16(&bytes, &mut units) {
                let mut back = Vec::new();
                from_utf16(&units[..len], &mut back);
                prop_assert_eq!(back, bytes);
            }
        }
    }
}
