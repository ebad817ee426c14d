//! Short names: eight characters, an implied dot, three characters
//! (specification, pages 24 and 30).

use crate::names::chars::{ByteSet, byte_set, in_set, lower, upper};
use crate::names::codepage::CodePage;
use crate::volume::ondisk::{FREE, KANJI, Short};

/// In `DIR_NTRes`: the eight characters are shown in lower case.
pub(crate) const LOWER_BASE: u8 = 0x08;
/// In `DIR_NTRes`: the three characters are shown in lower case.
pub(crate) const LOWER_EXT: u8 = 0x10;

/// The largest number after a tilde.
pub(crate) const TAIL_MAX: u32 = 999_999;

/// Returns the checksum that ties long entries to their short one (page 28).
pub(crate) fn checksum(name: &Short) -> u8 {
    name.iter()
        .fold(0_u8, |sum, &b| sum.rotate_right(1).wrapping_add(b))
}

/// Appends a short name as people write it: without padding, with its dot,
/// in the case that `flags` (`DIR_NTRes`) says.
pub(crate) fn decode(name: &Short, flags: u8, page: &CodePage, out: &mut Vec<u8>) {
    let mut real = *name;
    unhide_first(&mut real);
    let (base, ext) = real.split_at(8);
    let (base, ext) = (base.trim_spaces(), ext.trim_spaces());
    if base.is_empty() && ext.is_empty() {
        out.extend_from_slice("\u{f020}".as_bytes());
        return;
    }
    page.decode(base, flags & LOWER_BASE != 0, out);
    if !ext.is_empty() {
        out.push(b'.');
        page.decode(ext, flags & LOWER_EXT != 0, out);
    }
}

/// Sets `out` to a short name as it is shown without flags.
pub(crate) fn show_plain(name: &Short, page: &CodePage, out: &mut Vec<u8>) {
    out.clear();
    decode(name, 0, page, out);
}

/// A first byte of 0xE5 would mean a free entry: it is stored as 0x05.
pub(crate) fn hide_first(name: &mut [u8]) {
    if let Some(first) = name.first_mut().filter(|b| **b == FREE) {
        *first = KANJI;
    }
}

/// The other way around.
pub(crate) fn unhide_first(name: &mut [u8]) {
    if let Some(first) = name.first_mut().filter(|b| **b == KANJI) {
        *first = FREE;
    }
}

/// Bytes without the spaces at their end.
pub(crate) trait TrimSpaces {
    /// Returns the bytes up to the last that is not a space.
    fn trim_spaces(&self) -> &[u8];
}

impl TrimSpaces for [u8] {
    fn trim_spaces(&self) -> &[u8] {
        let len = self.iter().rposition(|&b| b != b' ').map_or(0, |i| i + 1);
        self.get(..len).unwrap_or(self)
    }
}

/// What a byte below 0x80 is to a short name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Upper,
    Lower,
    Other,
    Illegal,
}

/// What is neither a letter nor illegal (page 24).
static OTHER: ByteSet = byte_set(b"0123456789$%'-_@~`!(){}^#&");

fn class(byte: u8) -> Class {
    match byte {
        b'A'..=b'Z' => Class::Upper,
        b'a'..=b'z' => Class::Lower,
        _ if in_set(&OTHER, byte) => Class::Other,
        _ => Class::Illegal,
    }
}

/// A short name that says all of a name, with `DIR_NTRes` for its case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exact {
    /// The name as stored.
    pub name: Short,
    /// [`LOWER_BASE`] and [`LOWER_EXT`].
    pub flags: u8,
}

/// Returns the short name that shows exactly as `name`, if there is one: then no long
/// name is needed. Case may differ between the two parts, not within one.
pub(crate) fn exact(name: &[u8], page: &CodePage) -> Option<Exact> {
    let (base, ext) = match name.iter().position(|&b| b == b'.') {
        Some(dot) => (
            name.get(..dot)?,
            name.get(dot + 1..).filter(|e| !e.is_empty())?,
        ),
        None => (name, &[][..]),
    };
    let mut short = [b' '; 11];
    let (base_room, ext_room) = short.split_at_mut(8);
    let base_lower = exact_part(base, page, base_room)?;
    let ext_lower = exact_part(ext, page, ext_room)?;
    if base.is_empty() {
        return None;
    }
    hide_first(&mut short);
    let flag = |on, bit| if on { bit } else { 0 };
    Some(Exact {
        name: short,
        flags: flag(base_lower, LOWER_BASE) | flag(ext_lower, LOWER_EXT),
    })
}

/// Fills one part and says whether it is in lower case.
fn exact_part(text: &[u8], page: &CodePage, room: &mut [u8]) -> Option<bool> {
    let (mut uppers, mut lowers) = (false, false);
    let plain = text
        .iter()
        .position(|b| !b.is_ascii())
        .unwrap_or(text.len());
    let (plain, rest) = text.split_at_checked(plain)?;
    for (to, &b) in room.get_mut(..plain.len())?.iter_mut().zip(plain) {
        ascii_case(b, &mut uppers, &mut lowers)?;
        *to = b.to_ascii_uppercase();
    }
    let mut len = plain.len();
    for c in std::str::from_utf8(rest).ok()?.chars() {
        if c.is_ascii() {
            ascii_case(c as u8, &mut uppers, &mut lowers)?;
        } else if upper(c) == c {
            uppers |= lower(c) != c;
        } else {
            // A lower-case letter outside of ASCII would need every system to
            // agree on its upper-case form; a long name says it better.
            return None;
        }
        let encoded = page.encode_upper(c)?;
        let bytes = encoded.as_bytes();
        room.get_mut(len..len + bytes.len())?.copy_from_slice(bytes);
        len += bytes.len();
    }
    (!(uppers && lowers)).then_some(lowers)
}

/// Notes the case of an ASCII character; `None` if it is illegal.
fn ascii_case(byte: u8, uppers: &mut bool, lowers: &mut bool) -> Option<()> {
    match class(byte) {
        Class::Upper => *uppers = true,
        Class::Lower => *lowers = true,
        Class::Other => {}
        Class::Illegal => return None,
    }
    Some(())
}

/// What short names for a long name are made from (pages 30 and 31).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Basis {
    base: [u8; 8],
    ext: [u8; 3],
    /// Bit i: a character ends before byte i of the base.
    ends: u16,
    /// Something of the name is not in it.
    lossy: bool,
}

impl Basis {
    /// Of a long name (WTF-8): in upper case, without spaces and all dots but
    /// the last, `_` for what the code page lacks or the format forbids.
    pub fn of(name: &[u8], page: &CodePage) -> Self {
        let stem_start = name.iter().position(|&b| b != b'.').unwrap_or(0);
        let dot = name
            .iter()
            .rposition(|&b| b == b'.')
            .filter(|&d| d > stem_start);
        let (base_text, ext_text) = match dot {
            Some(d) => (name.get(..d), name.get(d + 1..)),
            None => (Some(name), None),
        };
        let mut basis = Self {
            base: [b' '; 8],
            ext: [b' '; 3],
            ends: 0,
            lossy: false,
        };
        let (base, base_lossy) = fill(base_text.unwrap_or_default(), page, &mut basis.base);
        let (_, ext_lossy) = fill(ext_text.unwrap_or_default(), page, &mut basis.ext);
        basis.ends = base;
        basis.lossy = base_lossy || ext_lossy;
        if base & !1 == 0 {
            // Nothing is left of the base: a name must begin with something.
            basis.base = *b"_       ";
            basis.ends = 0b11;
            basis.lossy = true;
        }
        basis
    }

    /// Returns the name without a tail, if nothing but case is lost by it.
    pub fn plain(&self) -> Option<Short> {
        (!self.lossy).then(|| self.join(self.base))
    }

    /// Returns the name with `~number` at the end of its base: for 1 to 999,999,
    /// all differ. Larger numbers are taken as 999,999, 0 as 1.
    pub fn numbered(&self, number: u32) -> Short {
        let mut digits = [0; 7];
        let tail = write_tail(number.clamp(1, TAIL_MAX), &mut digits);
        let (mut base, len) = self.stem(tail.len());
        for (room, &byte) in base.iter_mut().skip(len).zip(tail) {
            *room = byte;
        }
        self.join(base)
    }

    /// Returns what numbered names of `digits` digits have in common: base and
    /// extension. Two bases with the same key compete for the same names.
    pub fn key(&self, digits: usize) -> Short {
        self.join(self.stem(digits + 1).0)
    }

    /// Returns the base, cut so that `tail` bytes have room after it.
    fn stem(&self, tail: usize) -> ([u8; 8], usize) {
        let room = 8_usize.saturating_sub(tail);
        let len = (0..=room)
            .rev()
            .find(|i| self.ends >> i & 1 == 1)
            .unwrap_or(0);
        let mut base = [b' '; 8];
        for (to, from) in base.iter_mut().zip(self.base).take(len) {
            *to = from;
        }
        (base, len)
    }

    fn join(&self, base: [u8; 8]) -> Short {
        let mut name = [b' '; 11];
        for (to, from) in name.iter_mut().zip(base.into_iter().chain(self.ext)) {
            *to = from;
        }
        hide_first(&mut name);
        name
    }
}

/// Writes `~number`.
fn write_tail(number: u32, digits: &mut [u8; 7]) -> &[u8] {
    let mut rest = number;
    let mut start = digits.len();
    for (i, place) in digits.iter_mut().enumerate().rev() {
        start = i;
        if rest == 0 {
            *place = b'~';
            break;
        }
        // A remainder of 10 is one digit.
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    digits.get(start..).unwrap_or_default()
}

/// Puts as much of `text` as fits into `room`; gives where characters end, and
/// whether anything was lost.
fn fill(text: &[u8], page: &CodePage, room: &mut [u8]) -> (u16, bool) {
    let (mut len, mut ends, mut lossy) = (0, 1_u16, false);
    let plain = text
        .iter()
        .position(|b| !b.is_ascii())
        .unwrap_or(text.len());
    let (plain, text) = text.split_at_checked(plain).unwrap_or((text, &[]));
    for &b in plain {
        if matches!(b, b' ' | b'.') {
            lossy = true;
            continue;
        }
        let Some(place) = room.get_mut(len) else {
            return (ends, true);
        };
        let legal = class(b) != Class::Illegal;
        *place = if legal { b.to_ascii_uppercase() } else { b'_' };
        lossy |= !legal;
        len += 1;
        ends |= 1 << len;
    }
    for chunk in text.utf8_chunks() {
        let broken = (!chunk.invalid().is_empty()).then_some('\0');
        for c in chunk.valid().chars().chain(broken) {
            if matches!(c, ' ' | '.') {
                lossy = true;
                continue;
            }
            let legal = !c.is_ascii() || class(c as u8) != Class::Illegal;
            let encoded = page.encode_upper(c).filter(|_| legal);
            lossy |= encoded.is_none();
            let bytes = encoded.as_ref().map_or(&b"_"[..], |e| e.as_bytes());
            let Some(place) = room.get_mut(len..len + bytes.len()) else {
                return (ends, true);
            };
            place.copy_from_slice(bytes);
            len += bytes.len();
            ends |= 1 << len;
        }
    }
    (ends, lossy)
}

#[cfg(test)]
mod tests;
