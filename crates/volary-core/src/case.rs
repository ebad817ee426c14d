//! Case folding: which names are the same if upper and lower case are not told apart.
//!
//! The rule is that of Windows' file systems. Drivers, the session, layers and servers share it.
//! Each UTF-16 unit has one upper-case form, which is one unit too. So `ß`, `ς`, `ſ` and `ı` fold
//! to themselves, as does everything past U+FFFF. The table stays fixed, whatever later versions of
//! Unicode add: an upgrade must not make one name of two files.

/// UTF-16 units that have an upper-case form, in ranges. A row holds the first unit, the last, the
/// step, and the upper-case form of the first; the distance is the same for the others. The table
/// is what `$UpCase` of NTFS volumes has held since Windows Vista, without ASCII.
#[rustfmt::skip]
const UPPER: [(u16, u16, u16, u16); 133] = [
    (0x00e0, 0x00f6, 1, 0x00c0), (0x00f8, 0x00fe, 1, 0x00d8), (0x00ff, 0x00ff, 1, 0x0178), (0x0101, 0x012f, 2, 0x0100),
    (0x0133, 0x0137, 2, 0x0132), (0x013a, 0x0148, 2, 0x0139), (0x014b, 0x0177, 2, 0x014a), (0x017a, 0x017e, 2, 0x0179),
    (0x0180, 0x0180, 1, 0x0243), (0x0183, 0x0185, 2, 0x0182), (0x0188, 0x0188, 1, 0x0187), (0x018c, 0x018c, 1, 0x018b),
    (0x0192, 0x0192, 1, 0x0191), (0x0195, 0x0195, 1, 0x01f6), (0x0199, 0x0199, 1, 0x0198), (0x019a, 0x019a, 1, 0x023d),
    (0x019e, 0x019e, 1, 0x0220), (0x01a1, 0x01a5, 2, 0x01a0), (0x01a8, 0x01a8, 1, 0x01a7), (0x01ad, 0x01ad, 1, 0x01ac),
    (0x01b0, 0x01b0, 1, 0x01af), (0x01b4, 0x01b6, 2, 0x01b3), (0x01b9, 0x01b9, 1, 0x01b8), (0x01bd, 0x01bd, 1, 0x01bc),
    (0x01bf, 0x01bf, 1, 0x01f7), (0x01c6, 0x01c6, 1, 0x01c4), (0x01c9, 0x01c9, 1, 0x01c7), (0x01cc, 0x01cc, 1, 0x01ca),
    (0x01ce, 0x01dc, 2, 0x01cd), (0x01dd, 0x01dd, 1, 0x018e), (0x01df, 0x01ef, 2, 0x01de), (0x01f3, 0x01f3, 1, 0x01f1),
    (0x01f5, 0x01f5, 1, 0x01f4), (0x01f9, 0x021f, 2, 0x01f8), (0x0223, 0x0233, 2, 0x0222), (0x023c, 0x023c, 1, 0x023b),
    (0x0242, 0x0242, 1, 0x0241), (0x0247, 0x024f, 2, 0x0246), (0x0250, 0x0250, 1, 0x2c6f), (0x0251, 0x0251, 1, 0x2c6d),
    (0x0253, 0x0253, 1, 0x0181), (0x0254, 0x0254, 1, 0x0186), (0x0256, 0x0257, 1, 0x0189), (0x0259, 0x0259, 1, 0x018f),
    (0x025b, 0x025b, 1, 0x0190), (0x0260, 0x0260, 1, 0x0193), (0x0263, 0x0263, 1, 0x0194), (0x0268, 0x0268, 1, 0x0197),
    (0x0269, 0x0269, 1, 0x0196), (0x026b, 0x026b, 1, 0x2c62), (0x026f, 0x026f, 1, 0x019c), (0x0271, 0x0271, 1, 0x2c6e),
    (0x0272, 0x0272, 1, 0x019d), (0x0275, 0x0275, 1, 0x019f), (0x027d, 0x027d, 1, 0x2c64), (0x0280, 0x0280, 1, 0x01a6),
    (0x0283, 0x0283, 1, 0x01a9), (0x0288, 0x0288, 1, 0x01ae), (0x0289, 0x0289, 1, 0x0244), (0x028a, 0x028b, 1, 0x01b1),
    (0x028c, 0x028c, 1, 0x0245), (0x0292, 0x0292, 1, 0x01b7), (0x0371, 0x0373, 2, 0x0370), (0x0377, 0x0377, 1, 0x0376),
    (0x037b, 0x037d, 1, 0x03fd), (0x03ac, 0x03ac, 1, 0x0386), (0x03ad, 0x03af, 1, 0x0388), (0x03b1, 0x03c1, 1, 0x0391),
    (0x03c3, 0x03cb, 1, 0x03a3), (0x03cc, 0x03cc, 1, 0x038c), (0x03cd, 0x03ce, 1, 0x038e), (0x03d7, 0x03d7, 1, 0x03cf),
    (0x03d9, 0x03ef, 2, 0x03d8), (0x03f2, 0x03f2, 1, 0x03f9), (0x03f8, 0x03f8, 1, 0x03f7), (0x03fb, 0x03fb, 1, 0x03fa),
    (0x0430, 0x044f, 1, 0x0410), (0x0450, 0x045f, 1, 0x0400), (0x0461, 0x0481, 2, 0x0460), (0x048b, 0x04bf, 2, 0x048a),
    (0x04c2, 0x04ce, 2, 0x04c1), (0x04cf, 0x04cf, 1, 0x04c0), (0x04d1, 0x0523, 2, 0x04d0), (0x0561, 0x0586, 1, 0x0531),
    (0x1d79, 0x1d79, 1, 0xa77d), (0x1d7d, 0x1d7d, 1, 0x2c63), (0x1e01, 0x1e95, 2, 0x1e00), (0x1ea1, 0x1eff, 2, 0x1ea0),
    (0x1f00, 0x1f07, 1, 0x1f08), (0x1f10, 0x1f15, 1, 0x1f18), (0x1f20, 0x1f27, 1, 0x1f28), (0x1f30, 0x1f37, 1, 0x1f38),
    (0x1f40, 0x1f45, 1, 0x1f48), (0x1f51, 0x1f57, 2, 0x1f59), (0x1f60, 0x1f67, 1, 0x1f68), (0x1f70, 0x1f71, 1, 0x1fba),
    (0x1f72, 0x1f75, 1, 0x1fc8), (0x1f76, 0x1f77, 1, 0x1fda), (0x1f78, 0x1f79, 1, 0x1ff8), (0x1f7a, 0x1f7b, 1, 0x1fea),
    (0x1f7c, 0x1f7d, 1, 0x1ffa), (0x1f80, 0x1f87, 1, 0x1f88), (0x1f90, 0x1f97, 1, 0x1f98), (0x1fa0, 0x1fa7, 1, 0x1fa8),
    (0x1fb0, 0x1fb1, 1, 0x1fb8), (0x1fb3, 0x1fb3, 1, 0x1fbc), (0x1fc3, 0x1fc3, 1, 0x1fcc), (0x1fd0, 0x1fd1, 1, 0x1fd8),
    (0x1fe0, 0x1fe1, 1, 0x1fe8), (0x1fe5, 0x1fe5, 1, 0x1fec), (0x1ff3, 0x1ff3, 1, 0x1ffc), (0x214e, 0x214e, 1, 0x2132),
    (0x2170, 0x217f, 1, 0x2160), (0x2184, 0x2184, 1, 0x2183), (0x24d0, 0x24e9, 1, 0x24b6), (0x2c30, 0x2c5e, 1, 0x2c00),
    (0x2c61, 0x2c61, 1, 0x2c60), (0x2c65, 0x2c65, 1, 0x023a), (0x2c66, 0x2c66, 1, 0x023e), (0x2c68, 0x2c6c, 2, 0x2c67),
    (0x2c73, 0x2c73, 1, 0x2c72), (0x2c76, 0x2c76, 1, 0x2c75), (0x2c81, 0x2ce3, 2, 0x2c80), (0x2d00, 0x2d25, 1, 0x10a0),
    (0xa641, 0xa65f, 2, 0xa640), (0xa663, 0xa66d, 2, 0xa662), (0xa681, 0xa697, 2, 0xa680), (0xa723, 0xa72f, 2, 0xa722),
    (0xa733, 0xa76f, 2, 0xa732), (0xa77a, 0xa77c, 2, 0xa779), (0xa77f, 0xa787, 2, 0xa77e), (0xa78c, 0xa78c, 1, 0xa78b),
    (0xff41, 0xff5a, 1, 0xff21),
];

/// Returns the upper-case form of a character, or the character itself if the table has none. For
/// every `c`, `fold_char(fold_char(c)) == fold_char(c)`.
pub fn fold_char(c: char) -> char {
    if c.is_ascii() {
        return c.to_ascii_uppercase();
    }
    let Ok(unit) = u16::try_from(u32::from(c)) else {
        return c;
    };
    let after = UPPER.partition_point(|(first, ..)| *first <= unit);
    let run = after.checked_sub(1).and_then(|at| UPPER.get(at));
    match run {
        Some((first, last, step, upper))
            if unit <= *last && (unit - first).is_multiple_of(*step) =>
        {
            char::from_u32(u32::from(upper + (unit - first))).unwrap_or(c)
        }
        _ => c,
    }
}

/// Appends the folded form of `name` to `out`: names that differ in case alone have equal bytes in
/// it. Bytes that are not UTF-8 (such as WTF-8's lone surrogates) stay as they are.
pub fn fold_into(name: &[u8], out: &mut Vec<u8>) {
    out.reserve(name.len());
    for chunk in name.utf8_chunks() {
        let valid = chunk.valid();
        if valid.is_ascii() {
            out.extend(valid.bytes().map(|b| b.to_ascii_uppercase()));
        } else {
            for c in valid.chars() {
                out.extend_from_slice(fold_char(c).encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        out.extend_from_slice(chunk.invalid());
    }
}

/// Returns the folded form of a name; see [`fold_into`].
pub fn fold(name: &[u8]) -> Vec<u8> {
    let mut folded = Vec::new();
    fold_into(name, &mut folded);
    folded
}

/// Returns whether two names are equal or differ in case alone: whether their [`fold`] is equal.
pub fn same_name(a: &[u8], b: &[u8]) -> bool {
    a.eq_ignore_ascii_case(b) || !(a.is_ascii() && b.is_ascii()) && fold(a) == fold(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = char> {
        '\0'..=char::MAX
    }

    fn bytes(c: char) -> Vec<u8> {
        c.to_string().into_bytes()
    }

    #[test]
    fn the_runs_are_sorted_and_apart() {
        let sorted = UPPER.windows(2).all(|two| two[0].1 < two[1].0);
        assert!(sorted && UPPER.iter().all(|run| run.0 <= run.1));
    }

    /// The sum comes from a volume that mkntfs 2022.10.3 made. It is FNV-1a over each unit that
    /// changes and its upper-case form, little-endian.
    #[test]
    fn the_table_is_that_of_ntfs() {
        let (mut pairs, mut sum) = (0, 0xcbf2_9ce4_8422_2325_u64);
        for c in all().filter(|c| fold_char(*c) != *c) {
            pairs += 1;
            let unit = |c: char| u16::try_from(u32::from(c)).unwrap().to_le_bytes();
            for byte in [unit(c), unit(fold_char(c))].concat() {
                sum = (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        assert_eq!((pairs, sum), (973, 0x8b7d_1676_d36d_f04b));
    }

    #[test]
    fn folding_twice_is_folding_once() {
        for c in all() {
            let once = fold_char(c);
            assert_eq!(fold_char(once), once, "{c}");
        }
    }

    /// Compares each character with each that Unicode or the table relates to it.
    #[test]
    fn names_are_the_same_if_and_only_if_their_folded_forms_are() {
        for c in all() {
            let relatives = c.to_lowercase().chain(c.to_uppercase());
            for other in relatives.chain([fold_char(c)]).filter(|other| *other != c) {
                let (a, b) = (bytes(c), bytes(other));
                let is_same = fold_char(c) == fold_char(other);
                assert_eq!(same_name(&a, &b), is_same, "{c} {other}");
                assert_eq!(same_name(&b, &a), is_same, "{c} {other}");
                assert_eq!(fold(&a) == fold(&b), is_same, "{c} {other}");
            }
        }
    }

    #[test]
    fn what_unicode_folds_and_windows_does_not_stays_apart() {
        for (a, b) in [
            ("ς", "σ"),
            ("ſ", "s"),
            ("ı", "I"),
            ("\u{212a}", "k"),
            ("\u{b5}", "\u{3bc}"),
            ("ß", "SS"),
            ("ẞ", "ß"),
            ("𐐨", "𐐀"),
        ] {
            assert!(!same_name(a.as_bytes(), b.as_bytes()), "{a} {b}");
        }
        for (a, b) in [
            ("grün", "GRÜN"),
            ("Σ", "σ"),
            ("ᾀ", "ᾈ"),
            ("ÿ", "Ÿ"),
            ("ReadMe", "README"),
        ] {
            assert!(same_name(a.as_bytes(), b.as_bytes()), "{a} {b}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_their_own() {
        assert_eq!(fold(b"a\xffb\xed\xa0\x80"), b"A\xffB\xed\xa0\x80");
        assert!(!same_name(b"\xe4", b"\xc4"));
    }
}
