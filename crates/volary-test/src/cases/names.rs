//! Which names are valid, and which of them are equal.

use crate::suite::{Case, case_list};
use volary_core::{Create, Kind};

case_list! {
    about Lookup | Create | Rename | MkDir;
    ordinary_names_come_back_as_they_were_given with WRITE | CASE_KEEPING;
    names_in_other_scripts_come_back with WRITE | CASE_KEEPING;
    names_that_are_told_apart_by_case with WRITE | CASE_SENSITIVE;
    a_name_is_found_in_any_case with WRITE without CASE_SENSITIVE;
    a_name_in_other_case_is_taken with WRITE without CASE_SENSITIVE;
    a_name_in_other_case_can_be_removed with WRITE without CASE_SENSITIVE;
    create_in_other_case_opens_what_is_there with WRITE without CASE_SENSITIVE;
    case_is_kept with WRITE | CASE_KEEPING;
    case_is_not_kept with WRITE without CASE_KEEPING;
    a_name_of_the_greatest_length_can_be_had with WRITE;
    a_name_past_the_greatest_length_is_refused with WRITE;
    any_bytes_can_be_a_name with WRITE | ANY_NAME;
    a_name_that_the_format_cannot_keep_is_invalid with WRITE without ANY_NAME;
    names_with_the_same_beginning_are_all_kept with WRITE;
    names_are_kept_after_reattaching with WRITE | CASE_KEEPING;
}

const ORDINARY: &[&str] = &[
    "a",
    "README",
    "readme.txt.bak",
    "Makefile",
    "with blanks in it",
    "a.b.c.d",
    ".hidden",
    "x+y=z,[1];&'(2)'#%",
    "~",
    "a-name-of-some-forty-characters-with-an.extension",
];

const SCRIPTS: &[&str] = &[
    "grün",
    "Ελληνικά",
    "файл.txt",
    "日本語のファイル名",
    "emoji \u{1f980}.rs",
    "e\u{301}",
];

fn come_back(c: &Case, names: &[&str]) {
    for name in names {
        c.touch(c.root(), name);
        c.find(c.root(), name);
    }
    let mut want: Vec<String> = names.iter().map(ToString::to_string).collect();
    want.sort();
    assert_eq!(c.names(c.root()), want);
}

fn ordinary_names_come_back_as_they_were_given(c: &Case) {
    come_back(c, &short(c, ORDINARY));
}

/// Returns the names that are not too long for the volume.
fn short(c: &Case, names: &[&'static str]) -> Vec<&'static str> {
    let max = usize::from(c.caps().name_max);
    let all = names.iter().copied();
    all.filter(|name| name.len() <= max).collect()
}

fn names_in_other_scripts_come_back(c: &Case) {
    come_back(c, &short(c, SCRIPTS));
}

fn names_that_are_told_apart_by_case(c: &Case) {
    let (lower, upper) = (
        c.file(c.root(), "name", b"lower"),
        c.file(c.root(), "NAME", b"upper"),
    );
    assert_ne!(lower, upper);
    assert_eq!(c.content(c.find(c.root(), "name")), b"lower");
    assert_eq!(c.content(c.find(c.root(), "NAME")), b"upper");
    assert_eq!(c.lookup(c.root(), "Name").unwrap_err(), Kind::NotFound);
    assert_eq!(c.names(c.root()).len(), 2);
}

fn a_name_is_found_in_any_case(c: &Case) {
    for (name, other) in [
        ("Name.txt", "nAME.TXT"),
        ("a long name", "A LONG NAME"),
        ("Grün", "gRÜN"),
        ("SHORT", "short"),
        ("low", "LOW"),
    ] {
        let node = c.touch(c.root(), name);
        assert_eq!(c.find(c.root(), other), node, "{name} as {other}");
    }
}

fn a_name_in_other_case_is_taken(c: &Case) {
    c.file(c.root(), "Name", b"x");
    c.refuses(Kind::Exists, || c.create(c.root(), "NAME", Create::New));
    c.refuses(Kind::Exists, || c.mkdir(c.root(), "name"));
}

fn a_name_in_other_case_can_be_removed(c: &Case) {
    c.touch(c.root(), "Name");
    c.dir(c.root(), "Dir");
    c.unlink(c.root(), "nAME").expect("unlink");
    c.rmdir(c.root(), "dIR").expect("rmdir");
    assert!(c.names(c.root()).is_empty());
}

fn create_in_other_case_opens_what_is_there(c: &Case) {
    let node = c.file(c.root(), "Name", b"x");
    let (entry, open) = c.create(c.root(), "NAME", Create::Open).expect("create");
    c.close(open);
    assert_eq!(entry.node, node);
    assert_eq!(entry.attr.size, 1);
    assert_eq!(c.names(c.root()).len(), 1);
}

const MIXED: &[&str] = &[
    "Mixed Case Name.Txt",
    "UPPER",
    "aB.cD",
    "lower.txt",
    "Low.TXT",
];

fn case_is_kept(c: &Case) {
    come_back(c, &short(c, MIXED));
}

fn case_is_not_kept(c: &Case) {
    c.touch(c.root(), "aB.cD");
    let tree = c.tree();
    let names: Vec<&Vec<u8>> = tree.0.keys().collect();
    assert_eq!(names.len(), 1);
    assert!(names[0].eq_ignore_ascii_case(b"ab.cd"), "{names:?}");
    assert_ne!(names[0], b"aB.cD", "kept, but not claimed");
}

/// Returns a name of `len` bytes, in characters of three bytes if `wide`.
fn name_of(len: usize, wide: bool) -> String {
    let tail = "n".repeat(len % 3);
    if wide {
        "語".repeat(len / 3) + &tail
    } else {
        "n".repeat(len)
    }
}

fn a_name_of_the_greatest_length_can_be_had(c: &Case) {
    let max = usize::from(c.caps().name_max);
    // If the format counts characters, only wide ones reach the limit in bytes.
    let name = [false, true]
        .into_iter()
        .map(|wide| name_of(max, wide))
        .find(|name| c.mkdir(c.root(), name).is_ok())
        .expect("a name of the greatest length");
    let node = c.find(c.root(), &name);
    c.touch(node, &name);
    let other = format!(
        "m{}",
        &name[name.chars().next().map_or(1, char::len_utf8)..]
    );
    assert_eq!(c.lookup(c.root(), other).unwrap_err(), Kind::NotFound);
    assert_eq!(c.names(c.root()), std::slice::from_ref(&name));
    assert_eq!(c.names(node), [name]);
}

fn a_name_past_the_greatest_length_is_refused(c: &Case) {
    let max = usize::from(c.caps().name_max);
    let node = c.touch(c.root(), "f");
    for wide in [false, true] {
        for name in [name_of(max + 1, wide), name_of(4 * max, wide)] {
            let at = c.root();
            c.refuses(Kind::NameTooLong, || c.create(at, &name, Create::New));
            c.refuses(Kind::NameTooLong, || c.mkdir(at, &name));
            c.refuses(Kind::NameTooLong, || c.rename(at, "f", at, &name));
            let got = c.lookup(at, &name).expect_err("lookup of it");
            assert!(matches!(got.kind(), Kind::NotFound | Kind::NameTooLong));
        }
    }
    assert_eq!(c.find(c.root(), "f"), node);
}

fn any_bytes_can_be_a_name(c: &Case) {
    let names: &[&[u8]] = &[
        b"a\x01b",
        b"\x7f",
        b"\xff\xfe",
        b"trailing.",
        b"trailing ",
        b"a:b",
        b"a*?<>|\"b",
        b"back\\slash",
        b"...",
        b" ",
        b"line\nfeed",
        b"CON",
        b"aux.txt",
    ];
    for name in names {
        c.touch(c.root(), name);
    }
    for name in names {
        c.find(c.root(), name);
    }
    assert_eq!(c.names(c.root()).len(), names.len());
}

fn a_name_that_the_format_cannot_keep_is_invalid(c: &Case) {
    let at = c.root();
    c.touch(at, "f");
    for name in ["a\u{1}b", "\n"] {
        c.refuses(Kind::Invalid, || c.create(at, name, Create::New));
        c.refuses(Kind::Invalid, || c.create(at, name, Create::Open));
        c.refuses(Kind::Invalid, || c.mkdir(at, name));
        c.refuses(Kind::Invalid, || c.rename(at, "f", at, name));
        assert_eq!(c.lookup(at, name).unwrap_err(), Kind::NotFound);
        assert_eq!(c.unlink(at, name).unwrap_err(), Kind::NotFound);
    }
}

fn names_with_the_same_beginning_are_all_kept(c: &Case) {
    let names: Vec<String> = (0..300)
        .map(|i| c.fitting(format!("the same beginning {i:03}.text")))
        .collect();
    for (i, name) in names.iter().enumerate() {
        c.file(c.root(), name, i.to_string().as_bytes());
    }
    for (i, name) in names.iter().enumerate() {
        let node = c.find(c.root(), name);
        assert_eq!(c.content(node), i.to_string().as_bytes());
    }
    assert_eq!(c.names(c.root()).len(), 300);
}

fn names_are_kept_after_reattaching(c: &Case) {
    let mut all = short(c, ORDINARY);
    all.extend(short(c, SCRIPTS));
    all.extend(short(c, &MIXED[..1]));
    come_back(c, &all);
    let before = c.names(c.root());
    if c.reattach() {
        assert_eq!(c.names(c.root()), before);
        for name in all {
            c.find(c.root(), name);
        }
    }
}
