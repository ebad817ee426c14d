//! Whether bytes look like slots of a directory at all.
//!
//! A directory's chain can lead into another file's data. Mending what stands
//! there slot by slot would destroy that file, so each cluster is judged as a
//! whole first.

use crate::volume::layout::Layout;
use crate::volume::ondisk::{
    DOT, DOT_DOT, DirEntry, END, FREE, LAST_LONG_ENTRY, LongEntry, Raw, attr,
};
use zerocopy::transmute_ref;

/// What slots of a unit look like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) good: u32,
    pub(crate) bad: u32,
}

impl Tally {
    /// Returns whether this cannot have been a directory: more nonsense than sense.
    pub(crate) fn is_garbage(self) -> bool {
        self.bad > 3 && self.bad > self.good
    }
}

/// What a byte is in a short name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Byte {
    Fine,
    Lower,
    Bad,
}

/// Bytes of a short name, but for the first and for dots.
const BYTES: [Byte; 256] = {
    let mut table = [Byte::Fine; 256];
    let mut i = 0;
    while i < 256 {
        let b = i as u8;
        #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
        {
            table[i] = match b {
                b'a'..=b'z' => Byte::Lower,
                0..0x20
                | 0x7f
                | b'"'
                | b'*'
                | b'.'
                | b'/'
                | b':'
                | b'<'
                | b'>'
                | b'?'
                | b'\\'
                | b'|' => Byte::Bad,
                _ => Byte::Fine,
            };
        }
        i += 1;
    }
    table
};

fn byte(b: u8) -> Byte {
    BYTES.get(usize::from(b)).copied().unwrap_or(Byte::Bad)
}

/// Returns whether a short name is one that other systems take: neither control
/// characters nor bytes with a meaning, not blank at the start.
pub(crate) fn is_short_name(name: &[u8; 11]) -> bool {
    let bad = name.iter().any(|&b| byte(b) != Byte::Fine);
    if !bad {
        return name.first() != Some(&b' ');
    }
    // 0x05 stands for 0xE5. Lower-case letters are not allowed, but harm
    // nobody only where they are looked up as they are, which FAT does not.
    name.first() == Some(&5) && name.iter().skip(1).all(|&b| byte(b) == Byte::Fine)
}

/// Returns a short name with all that is not allowed replaced.
pub(crate) fn mended_name(name: &[u8; 11]) -> [u8; 11] {
    let mut out = *name;
    for (i, b) in out.iter_mut().enumerate() {
        *b = match byte(*b) {
            Byte::Fine if i == 0 && *b == b' ' => b'_',
            Byte::Fine => *b,
            Byte::Lower => b.to_ascii_uppercase(),
            Byte::Bad if i == 0 && *b == 5 => *b,
            Byte::Bad => b'_',
        };
    }
    out
}

/// What makes sense on a volume.
#[derive(Clone, Copy)]
pub(crate) struct Judge<'a> {
    pub(crate) layout: &'a Layout,
    /// The UNIX extension is in the paper's layout.
    pub(crate) paper: bool,
}

/// Returns whether a slot that is in use looks like an entry of this volume.
pub(crate) fn is_sane(raw: &Raw, on: Judge<'_>) -> bool {
    let entry: &DirEntry = transmute_ref!(raw);
    if on.paper {
        return is_sane_in_paper(entry, on.layout);
    }
    let layout = on.layout;
    if entry.is_long() {
        let part: &LongEntry = transmute_ref!(raw);
        let order = part.LDIR_Ord & !LAST_LONG_ENTRY;
        return (1..=20).contains(&order) && part.LDIR_Type == 0 && part.LDIR_FstClusLO.get() == 0;
    }
    let name = &entry.DIR_Name;
    let dots = *name == DOT || *name == DOT_DOT;
    let label = entry.DIR_Attr & attr::VOLUME_ID != 0;
    let bad = |&b: &u8| byte(b) == Byte::Bad && b != 5;
    if !dots && !label && name.iter().any(bad) {
        return false;
    }
    let lower = name.iter().any(|&b| byte(b) == Byte::Lower);
    if entry.DIR_Attr & 0xc0 != 0 && lower {
        return false;
    }
    let start = entry.first_cluster(layout.is_fat32());
    start == 0 || layout.is_cluster(start)
}

/// In the paper's layout names are of almost any bytes, and what is marked as
/// a label may be the rest of one.
fn is_sane_in_paper(entry: &DirEntry, layout: &Layout) -> bool {
    if entry.DIR_Attr & attr::VOLUME_ID != 0 {
        return entry.DIR_Attr & attr::DIRECTORY == 0;
    }
    let start = entry.first_cluster(layout.is_fat32());
    let name = !entry.DIR_Name.iter().any(|b| matches!(b, 0 | b'/'));
    name && (start == 0 || layout.is_cluster(start))
}

/// Looks at slots up to an end mark.
pub(crate) fn tally(bytes: &[u8], on: Judge<'_>) -> Tally {
    let (slots, _) = bytes.as_chunks::<32>();
    let mut tally = Tally::default();
    for raw in slots {
        match raw.first() {
            None | Some(&END) => break,
            Some(&FREE) => {}
            Some(_) if is_sane(raw, on) => tally.good += 1,
            Some(_) => tally.bad += 1,
        }
    }
    tally
}

/// Returns whether a cluster can be a later one of a directory.
pub(crate) fn is_part(bytes: &[u8], on: Judge<'_>) -> bool {
    let tally = tally(bytes, on);
    tally.bad == 0
        && (tally.good > 0
            || bytes.iter().all(|&b| b == 0 || b == FREE)
            || bytes
                .as_chunks::<32>()
                .0
                .iter()
                .all(|raw| raw.first() == Some(&FREE)))
}

/// Returns whether a directory's first cluster begins with an entry for itself.
pub(crate) fn has_dot(bytes: &[u8], cluster: u32, layout: &Layout) -> bool {
    let (slots, _) = bytes.as_chunks::<32>();
    let Some(raw) = slots.first() else {
        return false;
    };
    let entry: &DirEntry = transmute_ref!(raw);
    entry.DIR_Name == DOT && entry.is_dir() && entry.first_cluster(layout.is_fat32()) == cluster
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_mended_and_then_fine() {
        for (name, mended) in [
            (b"AB*D    TXT", b"AB_D    TXT"),
            (b" BCD    TXT", b"_BCD    TXT"),
            (b"abcd    TXT", b"ABCD    TXT"),
            (b"A\x01CD    T.T", b"A_CD    T_T"),
            (b"\x05BCD    \x05XT", b"\x05BCD    _XT"),
        ] {
            assert!(!is_short_name(name));
            assert_eq!(mended_name(name), *mended);
            assert!(is_short_name(mended));
        }
        assert!(is_short_name(b"A B+C   ~1 "));
    }
}
