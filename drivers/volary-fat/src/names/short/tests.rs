use super::*;
use crate::volume::ondisk::END;
use proptest::prelude::*;

/// Returns whether the specification allows these bytes as a short name: no control
/// characters, lower-case letters or bytes with a meaning, not blank at the
/// start. `.` and `..` are not allowed by this.
fn is_valid(name: &Short, page: &CodePage) -> bool {
    if matches!(name.first(), Some(&(b' ' | END | FREE))) {
        return false;
    }
    let mut trail = false;
    name.iter().enumerate().all(|(i, &b)| {
        if std::mem::take(&mut trail) {
            return i != 8 && b >= 0x20;
        }
        trail = page.is_lead(b);
        b >= 0x80
            || b == b' '
            || (i == 0 && b == KANJI)
            || matches!(class(b), Class::Upper | Class::Other)
    })
}

fn page() -> CodePage {
    CodePage::new(437).unwrap()
}

fn shown(name: &Short, flags: u8) -> String {
    let mut out = Vec::new();
    decode(name, flags, &page(), &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_short_name_is_shown_without_padding_and_in_its_case() {
    assert_eq!(shown(b"README  TXT", 0), "README.TXT");
    assert_eq!(shown(b"README  TXT", LOWER_BASE), "readme.TXT");
    assert_eq!(shown(b"README  TXT", LOWER_BASE | LOWER_EXT), "readme.txt");
    assert_eq!(shown(b"A B        ", 0), "A B");
    assert_eq!(shown(b"\x05BC        ", 0), "σBC");
    assert_eq!(shown(b"           ", 0), "\u{f020}");
    assert_eq!(shown(b"        TXT", 0), ".TXT");
}

#[test]
fn what_fits_needs_no_long_name() {
    let e = |name: &str, flags| exact(name.as_bytes(), &page()).map(|e| (e.name, e.flags)) == flags;
    assert!(e("README.TXT", Some((*b"README  TXT", 0))));
    assert!(e("readme.txt", Some((*b"README  TXT", 0x18))));
    assert!(e("README.txt", Some((*b"README  TXT", 0x10))));
    assert!(e("makefile", Some((*b"MAKEFILE   ", 0x08))));
    assert!(e("ÉTÉ", Some((*b"\x90T\x90     \x20  ", 0))));
    assert!(e("σx", None), "a lower-case letter that is not ASCII");
    for name in [
        "Readme.txt",
        "a.b.c",
        ".rc",
        "a b",
        "toolongname",
        "a.html",
        "x+y",
        "été",
        "日",
    ] {
        assert!(e(name, None), "{name}");
    }
}

#[test]
fn generated_names_are_those_that_windows_makes() {
    let of = |name: &str| Basis::of(name.as_bytes(), &page());
    assert_eq!(of("The quick brown.fox").numbered(1), *b"THEQUI~1FOX");
    assert_eq!(of("The quick brown.fox").plain(), None);
    assert_eq!(of("Readme.Txt").plain(), Some(*b"README  TXT"));
    assert_eq!(of(".bashrc").numbered(1), *b"BASHRC~1   ");
    assert_eq!(of("a.b.c.html").numbered(12), *b"ABC~12  HTM");
    assert_eq!(of("x+y=z.c").numbered(1), *b"X_Y_Z~1 C  ");
    assert_eq!(of("longfilename").numbered(999_999), *b"L~999999   ");
    assert_eq!(of("日本").numbered(3), *b"__~3       ");
    assert_eq!(of("...").numbered(1), *b"_~1        ");
}

#[test]
fn a_character_of_two_bytes_is_never_cut() {
    let japan = CodePage::new(932).unwrap();
    let basis = Basis::of("a日本語の名前".as_bytes(), &japan);
    let name = basis.numbered(1);
    assert_eq!(
        &name[..5],
        b"a\x93\xfa\x96\x7b"
            .map(|b| b.to_ascii_uppercase() | (b & 0x80))
            .as_slice()
    );
    let mut out = Vec::new();
    decode(&name, 0, &japan, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), "A日本~1");
}

#[test]
fn names_against_the_specification_are_told() {
    for good in [
        b"README  TXT",
        b"A~1        ",
        b"\x05BC        ",
        b"A B     C  ",
    ] {
        assert!(is_valid(good, &page()), "{good:?}");
    }
    for bad in [
        b" A         ",
        b"readme  txt",
        b"A.B        ",
        b"A\x05B        ",
        b"A*         ",
        &[0xe5; 11],
    ] {
        assert!(!is_valid(bad, &page()), "{bad:?}");
    }
}

#[test]
fn the_checksum_is_the_specifications() {
    // Computed with the C routine on page 28.
    assert_eq!(checksum(b"FILENAMETXT"), 0x3a);
}

proptest! {
    #[test]
    fn what_is_exact_shows_as_it_was(name in "[A-Za-z0-9_~.ÉÇσ]{1,12}", number in prop::sample::select(&CodePage::ALL[..])) {
        let page = CodePage::new(number).unwrap();
        if let Some(e) = exact(name.as_bytes(), &page) {
            let mut out = Vec::new();
            decode(&e.name, e.flags, &page, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), name);
            prop_assert!(is_valid(&e.name, &page));
        }
    }

    #[test]
    fn every_basis_gives_valid_and_distinct_names(name in "\\PC{1,30}", number in prop::sample::select(&CodePage::ALL[..]), n in 1..TAIL_MAX) {
        let page = CodePage::new(number).unwrap();
        let basis = Basis::of(name.as_bytes(), &page);
        prop_assert!(is_valid(&basis.numbered(n), &page), "{:?}", basis.numbered(n));
        prop_assert_ne!(basis.numbered(n), basis.numbered(n + 1));
        if let Some(plain) = basis.plain() {
            prop_assert!(is_valid(&plain, &page), "{:?}", plain);
        }
    }

    #[test]
    fn any_bytes_are_shown_as_some_name(bytes: [u8; 11], flags: u8, number in prop::sample::select(&CodePage::ALL[..])) {
        let page = CodePage::new(number).unwrap();
        let mut out = Vec::new();
        decode(&bytes, flags, &page, &mut out);
        prop_assert!(std::str::from_utf8(&out).is_ok());
        prop_assert!(volary_core::Name::new(&out).is_ok(), "{:?}", out);
    }
}
