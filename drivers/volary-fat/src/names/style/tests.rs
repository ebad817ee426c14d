use super::*;
use crate::directory::slots::{Event, Scanner};
use crate::volume::ondisk::{DOT_DOT, DirEntry, ENTRY_LEN};
use proptest::prelude::*;
use std::ops::ControlFlow;
use zerocopy::{FromZeros, IntoBytes};

fn names(style: Style, paper: bool) -> Names {
    Names::new(style, 437, paper).unwrap()
}

/// Returns the bytes of a directory that holds a name as `names` stores it.
fn write(names: &Names, name: &[u8]) -> Result<Vec<u8>> {
    let mut entry = DirEntry::new_zeroed();
    let mut out = Vec::new();
    let mut after = None;
    match names.store(name)? {
        Stored::Short(short, flags) => (entry.DIR_Name, entry.DIR_NTRes) = (short, flags),
        Stored::Long(long, basis) => {
            entry.DIR_Name = basis.numbered(1);
            for part in long.entries(short::checksum(&entry.DIR_Name)) {
                out.extend_from_slice(part.as_bytes());
            }
        }
        Stored::Paper(short, tail) => {
            entry.DIR_Name = short;
            entry.DIR_Attr = paper::LONG;
            after = Some(paper::tail_entry(&tail));
        }
    }
    out.extend_from_slice(entry.as_bytes());
    out.extend_from_slice(after.as_ref().map_or(&[], |a| a.as_bytes()));
    Ok(out)
}

fn read(names: &Names, bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut each = |event: Event<'_>| -> ControlFlow<()> {
        if let Event::Record(r) = event {
            let mut out = Vec::new();
            names.show(&r, &mut out);
            all.push(out);
        }
        ControlFlow::Continue(())
    };
    let mut scanner = Scanner::new(names.long);
    let _ = scanner.feed(bytes, &mut each);
    let _ = scanner.finish(&mut each);
    all
}

#[test]
fn one_entry_in_the_three_translations_of_the_paper_and_in_vfats() {
    let mut entry = DirEntry::new_zeroed();
    entry.DIR_Name = *b"README  TXT";
    entry.DIR_NTRes = LOWER_EXT;
    let shown =
        |style| String::from_utf8(read(&names(style, false), entry.as_bytes()).remove(0)).unwrap();
    assert_eq!(shown(Style::Dos), "README.TXT");
    assert_eq!(shown(Style::Lower), "readme.txt");
    assert_eq!(shown(Style::Unix), "README  TXT");
    assert_eq!(shown(Style::Long), "README.txt");
}

#[test]
fn short_translations_refuse_what_they_cannot_say() {
    let kind = |style, name: &str| {
        names(style, false)
            .store(name.as_bytes())
            .err()
            .map(|e| e.kind())
    };
    for style in [Style::Dos, Style::Lower] {
        assert_eq!(kind(style, "readme.TXT"), None);
        assert_eq!(kind(style, "toolongname"), Some(Kind::NameTooLong));
        assert_eq!(kind(style, "a.html"), Some(Kind::NameTooLong));
        assert_eq!(kind(style, "a+b"), Some(Kind::Invalid));
        assert_eq!(kind(style, ".rc"), Some(Kind::Invalid));
        assert_eq!(kind(style, "a:b"), Some(Kind::Invalid));
    }
    assert_eq!(kind(Style::Unix, "elevenbytes"), None);
    assert_eq!(kind(Style::Unix, "twelve bytes"), Some(Kind::NameTooLong));
    assert_eq!(kind(Style::Unix, "a "), Some(Kind::Invalid));
    assert_eq!(kind(Style::Unix, "\u{5}x"), Some(Kind::Invalid));
}

#[test]
fn lower_case_takes_one_entry_and_mixed_case_a_long_name() {
    let long = names(Style::Long, false);
    assert!(matches!(long.store(b"main.rs"), Ok(Stored::Short(_, 0x18))));
    assert!(matches!(long.store(b"Main.rs"), Ok(Stored::Long(..))));
    let paper = names(Style::Long, true);
    assert!(matches!(paper.store(b"main.rs"), Ok(Stored::Long(..))));
}

#[test]
fn the_papers_long_names_hold_42_bytes() {
    let n = names(Style::Lower, true);
    let name = b"a-name-of-forty-two-bytes-which-is-the-end";
    assert_eq!(name.len(), 42);
    assert_eq!(read(&n, &write(&n, name).unwrap()), [name]);
    assert_eq!(
        write(&n, b"a-name-of-forty-three-bytes-which-is-too-ba").unwrap_err(),
        Kind::NameTooLong
    );
    assert_eq!(read(&n, &write(&n, b"SHORT.C").unwrap()), [b"short.c"]);
}

#[test]
fn a_long_name_that_could_not_be_looked_up_is_not_shown() {
    let n = names(Style::Long, false);
    let short = *b"X          ";
    for bad in ["a/b", ".", ".."] {
        let mut bytes = Vec::new();
        let name = LongName::new(bad.replace(['/', '.'], "q").as_bytes()).unwrap();
        for mut part in name.entries(short::checksum(&short)) {
            for (unit, c) in part.LDIR_Name1.iter_mut().zip(bad.encode_utf16()) {
                unit.set(c);
            }
            bytes.extend_from_slice(part.as_bytes());
        }
        let mut entry = DirEntry::new_zeroed();
        entry.DIR_Name = short;
        bytes.extend_from_slice(entry.as_bytes());
        assert_eq!(read(&n, &bytes), [b"X"], "{bad}");
    }
}

#[test]
fn dot_entries_are_shown_as_dots_only_where_they_are() {
    for style in Style::CHOICES.map(|c| c.1) {
        let n = names(style, false);
        let mut out = Vec::new();
        n.show_short(&DOT_DOT, 0, &mut out);
        assert_eq!(out, b"..");
        out.clear();
        n.show_short(b"...        ", 0, &mut out);
        assert_ne!(out, b".");
    }
}

proptest! {
    #[test]
    fn what_can_be_stored_is_shown_again(
        name in prop_oneof!["[a-zA-Z0-9_.~ +]{1,20}", "\\PC{1,40}", "[A-Z]{1,8}(\\.[a-z]{1,3})?"],
        style in prop::sample::select(Style::CHOICES.map(|c| c.1).to_vec()),
        paper: bool,
    ) {
        prop_assume!(volary_core::Name::new(name.as_bytes()).is_ok());
        let n = names(style, paper);
        if let Ok(bytes) = write(&n, name.as_bytes()) {
            let shown = read(&n, &bytes);
            prop_assert_eq!(shown.len(), 1);
            let (mut a, mut b) = (Vec::new(), Vec::new());
            n.fold(&shown[0], &mut a);
            n.fold(name.as_bytes(), &mut b);
            prop_assert_eq!(a, b);
            if matches!(style, Style::Long | Style::Unix) {
                prop_assert_eq!(&shown[0], name.as_bytes());
            }
        }
    }

    #[test]
    fn any_bytes_are_shown_as_names(
        mut bytes in proptest::collection::vec(any::<u8>(), ENTRY_LEN * 20),
        style in prop::sample::select(Style::CHOICES.map(|c| c.1).to_vec()),
        paper: bool,
    ) {
        for raw in bytes.chunks_mut(ENTRY_LEN) {
            raw[0] |= 1;
            raw[11] &= if paper { 0x88 } else { 0x0f };
        }
        for name in read(&names(style, paper), &bytes) {
            let dots = name == b"." || name == b"..";
            prop_assert!(dots || volary_core::Name::new(&name).is_ok(), "{:?}", name);
        }
    }
}

proptest! {
    #[test]
    fn a_short_name_folds_to_what_is_shown_folded(
        wild: [u8; 11],
        tame in "[ A-Za-z0-9~./_]{11}",
        is_wild: bool,
    ) {
        let mut name = wild;
        if !is_wild {
            name.copy_from_slice(tame.as_bytes());
        }
        for style in [Style::Long, Style::Dos, Style::Lower, Style::Unix] {
            let names = names(style, false);
            let (mut shown, mut expected) = (Vec::new(), Vec::new());
            names.show_short(&name, 0, &mut shown);
            names.fold(&shown, &mut expected);
            let (mut spare, mut folded) = (b"old".to_vec(), b"old".to_vec());
            names.fold_short(&name, &mut spare, &mut folded);
            prop_assert_eq!(&folded, &expected);
        }
    }
}
