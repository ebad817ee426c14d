use super::*;
use crate::names::long::LongName;
use crate::volume::ondisk::{Short, attr};
use proptest::prelude::*;
use zerocopy::{FromZeros, IntoBytes};

#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Record(u32, u32, u32, Option<String>),
    Free(u32),
    Orphan(u32, u32),
    End(u32),
}

fn scan(style: LongStyle, chunks: &[&[u8]]) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut each = |event: Event<'_>| -> ControlFlow<()> {
        seen.push(match event {
            Event::Record(r) => {
                let long = match r.long {
                    Long::None => None,
                    Long::Vfat(units) => Some(String::from_utf16_lossy(units)),
                    Long::Paper(tail) => Some(String::from_utf8_lossy(&tail).trim_end().into()),
                };
                Seen::Record(r.first_slot, r.slot, r.last_slot, long)
            }
            Event::Free(slot) => Seen::Free(slot),
            Event::Orphan { first, count } => Seen::Orphan(first, count),
            Event::End(slot) => Seen::End(slot),
        });
        ControlFlow::Continue(())
    };
    let mut scanner = Scanner::new(style);
    for chunk in chunks {
        let _ = scanner.feed(chunk, &mut each);
    }
    let _ = scanner.finish(&mut each);
    seen
}

fn short(name: &Short) -> Vec<u8> {
    let mut entry = DirEntry::new_zeroed();
    entry.DIR_Name = *name;
    entry.as_bytes().to_vec()
}

fn long(name: &str, of: &Short) -> Vec<u8> {
    let long = LongName::new(name.as_bytes()).unwrap();
    long.entries(checksum(of))
        .flat_map(|e| e.as_bytes().to_vec())
        .collect()
}

const A: &Short = b"A          ";
const B: &Short = b"B          ";
const NAME: &str = "a name of more than thirteen";

#[test]
fn a_long_name_goes_with_the_short_one_after_it() {
    let bytes = [long(NAME, A), short(A), short(B), vec![0; 64]].concat();
    let expected = [
        Seen::Record(0, 3, 3, Some(NAME.into())),
        Seen::Record(4, 4, 4, None),
        Seen::End(5),
    ];
    assert_eq!(scan(LongStyle::Vfat, &[&bytes]), expected);
    let chunks: Vec<&[u8]> = bytes.chunks(32).collect();
    assert_eq!(scan(LongStyle::Vfat, &chunks), expected);
}

#[test]
fn parts_that_belong_to_nothing_are_orphans() {
    let part = |i: usize| long(NAME, A)[i * 32..i * 32 + 32].to_vec();
    let free = {
        let mut e = short(A);
        e[0] = FREE;
        e
    };
    let mut label = short(A);
    label[11] = attr::VOLUME_ID;
    let cases: [(Vec<Vec<u8>>, Vec<Seen>); 7] = [
        (
            vec![long(NAME, A), short(B)],
            vec![Seen::Orphan(0, 3), Seen::Record(3, 3, 3, None)],
        ),
        (
            vec![part(0), part(2), short(A)],
            vec![
                Seen::Orphan(0, 1),
                Seen::Orphan(1, 1),
                Seen::Record(2, 2, 2, None),
            ],
        ),
        (
            vec![part(1), part(2), short(A)],
            vec![Seen::Orphan(0, 2), Seen::Record(2, 2, 2, None)],
        ),
        (
            vec![part(2), long(NAME, A), short(A)],
            vec![Seen::Orphan(0, 1), Seen::Record(1, 4, 4, Some(NAME.into()))],
        ),
        (
            vec![part(0), part(1), free],
            vec![Seen::Orphan(0, 2), Seen::Free(2)],
        ),
        (
            vec![long(NAME, A), label],
            vec![Seen::Orphan(0, 3), Seen::Record(3, 3, 3, None)],
        ),
        (
            vec![part(0), long(NAME, A)],
            vec![Seen::Orphan(0, 1), Seen::Orphan(1, 3)],
        ),
    ];
    for (parts, expected) in cases {
        assert_eq!(scan(LongStyle::Vfat, &[&parts.concat()]), expected);
    }
}

#[test]
fn nothing_after_the_end_mark_is_read() {
    let bytes = [short(A), vec![0; 32], short(B)].concat();
    assert_eq!(
        scan(LongStyle::Vfat, &[&bytes]),
        [Seen::Record(0, 0, 0, None), Seen::End(1)]
    );
}

#[test]
fn the_papers_long_name_comes_after_the_short_one() {
    let mut head = short(A);
    head[11] = paper::LONG;
    let tail = paper::tail_entry(b"the rest of it                 ")
        .as_bytes()
        .to_vec();
    let bytes = [head.clone(), tail.clone(), head.clone(), short(B), head].concat();
    let expected = [
        Seen::Record(0, 0, 1, Some("the rest of it".into())),
        Seen::Record(2, 2, 2, None),
        Seen::Record(3, 3, 3, None),
        Seen::Record(4, 4, 4, None),
    ];
    assert_eq!(scan(LongStyle::Paper, &[&bytes]), expected);
    assert_eq!(scan(LongStyle::Vfat, &[&bytes]).len(), 5);
}

proptest! {
    #[test]
    fn a_record_is_the_same_read_from_where_it_begins(
        pieces in proptest::collection::vec((0..6_u8, 0..4_usize, any::<bool>()), 1..12),
    ) {
        let mut bytes = Vec::new();
        for (kind, cut, other) in pieces {
            let of = if other { A } else { B };
            let parts = long(NAME, of);
            match kind {
                0 | 1 => bytes.extend([parts, short(of)].concat()),
                2 => bytes.extend_from_slice(&parts[..cut.min(3) * 32]),
                3 => bytes.extend_from_slice(&parts[cut.min(3) * 32..]),
                4 => bytes.extend([&[FREE][..], &short(of)[1..]].concat()),
                _ => bytes.extend(short(of)),
            }
        }
        let slots = bytes.as_chunks::<ENTRY_LEN>().0;
        for seen in scan(LongStyle::Vfat, &[&bytes]) {
            let Seen::Record(first, slot, last, name) = seen else { continue };
            let begin = begin_of(slots, slot as usize);
            let again = scan(LongStyle::Vfat, &[slots[begin..=last as usize].as_flattened()]);
            let by = begin as u32;
            let record = again.into_iter().find_map(|seen| match seen {
                Seen::Record(f, s, l, name) => Some((f + by, s + by, l + by, name)),
                _ => None,
            });
            prop_assert_eq!(record, Some((first, slot, last, name)));
        }
    }

    #[test]
    fn every_slot_of_any_bytes_is_in_exactly_one_event(
        mut bytes in proptest::collection::vec(any::<u8>(), 32 * 40),
        tame in proptest::collection::vec(0..6_u8, 40),
        paper: bool,
    ) {
        for (raw, tame) in bytes.chunks_mut(32).zip(tame) {
            match tame {
                0 => raw[11] = attr::LONG_NAME,
                1 => (raw[0], raw[11]) = (0x41 + raw[1] % 3, attr::LONG_NAME),
                2 => (raw[0], raw[11]) = (1 + raw[1] % 3, attr::LONG_NAME),
                3 => raw[11] = paper::LONG,
                4 => raw[11] = attr::VOLUME_ID,
                _ => {}
            }
        }
        let style = if paper { LongStyle::Paper } else { LongStyle::Vfat };
        let mut next = 0;
        for event in scan(style, &[&bytes]) {
            let (first, last) = match event {
                Seen::Record(first, slot, last, _) => {
                    prop_assert!(first <= slot && slot <= last);
                    (first, last)
                }
                Seen::Free(slot) | Seen::End(slot) => (slot, slot),
                Seen::Orphan(first, count) => (first, first + count - 1),
            };
            prop_assert_eq!(first, next);
            next = last + 1;
        }
        prop_assert!(next == 40 || bytes[(next as usize - 1) * 32] == 0);
    }
}
