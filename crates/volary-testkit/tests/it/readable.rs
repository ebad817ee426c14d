//! The count of readable bytes, on volumes of which it is known.

use crate::conformance::{lacking, model};
use volary_core::{Create, Ctx, Fs, Name, SetAttr};
use volary_testkit::readable::{Content, Readable};
use volary_testkit::volumes::as_root;

fn put(fs: &Fs, cx: &Ctx<'_>, name: &str, bytes: &[u8]) {
    let name = Name::new(name.as_bytes()).expect("a name");
    let set = SetAttr::owned(0o644, 0, 0);
    let made = fs.create(cx, fs.root(), name, Create::New, &set);
    let (_, open) = made.expect("create");
    fs.write(cx, open, Some(0), bytes).expect("write");
    fs.close(cx, open).expect("close");
}

/// Sectors that differ from each other, and a rest.
fn bytes(seed: u8) -> Vec<u8> {
    let sector = |n: u8| [seed, n].repeat(256);
    let mut all: Vec<u8> = (0..200).flat_map(sector).collect();
    all.extend([seed, 255].repeat(50));
    all
}

fn count(original: &Content, files: &[(&str, Vec<u8>)]) -> Readable {
    let fs = model(lacking(0));
    as_root(|cx| {
        for (name, bytes) in files {
            put(&fs, cx, name, bytes);
        }
        original.readable(&fs, cx)
    })
}

#[test]
fn bytes_count_at_their_place_or_in_a_new_file() {
    let fs = model(lacking(0));
    let (a, b) = (bytes(1), bytes(2));
    let original = as_root(|cx| {
        put(&fs, cx, "a", &a);
        put(&fs, cx, "b", &b);
        Content::read(&fs, cx).expect("content")
    });
    let all = count(&original, &[("a", a.clone()), ("b", b.clone())]);
    assert_eq!(all.total(), 2 * 102_500, "{all}");
    // A byte of one sector, and the rest behind the last whole one.
    let mut damaged = a.clone();
    damaged[5000] ^= 1;
    damaged.truncate(102_400);
    let less = count(&original, &[("a", damaged), ("b", b.clone())]);
    assert_eq!(less.0[b"a".as_slice()], 102_400 - 512, "{less}");
    let lost = less.lost_since(&all);
    assert!(
        matches!(&lost[..], [one] if one.starts_with("'a'")),
        "{lost:?}"
    );
    assert!(all.lost_since(&less).is_empty());
    // Moved by 3 sectors into a file that was not there; in one that was there they are lost.
    let mut moved = vec![0; 3 * 512];
    moved.extend_from_slice(&a);
    moved.extend([7; 300]);
    let found = count(&original, &[("#3", moved.clone()), ("b", b)]);
    assert_eq!(found, all);
    let lost = count(&original, &[("b", moved)]);
    assert_eq!(lost.total(), 0, "{lost}");
}
