//! Something new in the place of an entry: nothing is lost if it cannot be made.

use crate::{Make, kind, root, volume};
use volary_core::{Error, Kind, NodeId, Result, SetAttr};
use volary_session::Session;

fn fails() -> Result<()> {
    Err(Kind::TooManyLinks.into())
}

fn names(s: &Session) -> Vec<Option<NodeId>> {
    let names: [&[u8]; 3] = [b"f", b"~0", b"~1"];
    let top = s.root();
    let found = names.map(|name| s.lookup(top, name).ok().map(|entry| entry.node));
    found.into()
}

#[test]
fn what_is_in_the_place_stays_if_nothing_new_is_made() {
    let volume = volume();
    let s = root(&volume);
    let (top, f, spare) = (
        s.root(),
        s.file(s.root(), "f", 0o644),
        s.file(s.root(), "~0", 0o644),
    );
    let there = vec![Some(f), Some(spare), None];
    let failed = s.replacing(top, b"f", fails);
    assert_eq!(kind(failed), Some(Kind::TooManyLinks));
    assert_eq!(names(&s), there);

    let other = s.file(top, "g", 0o644);
    let made = s.replacing(top, b"f", || s.link(other, top, b"f").map(drop));
    assert_eq!(made, Ok(()));
    assert_eq!(names(&s), vec![Some(other), Some(spare), None]);
    assert_eq!(kind(s.getattr(f)), Some(Kind::Stale));
}

#[test]
fn of_directories_only_an_empty_one_is_replaced_and_only_when_asked() {
    let volume = volume();
    let s = root(&volume);
    let top = s.root();
    let dir = s.dir(top, "f", 0o755);
    s.file(dir, "inner", 0o644);
    let there = vec![Some(dir), None, None];
    let symlink = || s.symlink(top, b"f", b"x", &SetAttr::mode(0o777)).map(drop);
    let made: Result<()> = s.replacing(top, b"f", symlink);
    assert_eq!(kind(made), Some(Kind::IsDir));
    assert_eq!(names(&s), there);
    let made: Result<()> = s.replacing_any(top, b"f", symlink);
    assert_eq!(kind(made), Some(Kind::NotEmpty));
    assert_eq!(names(&s), there);
    s.unlink(dir, b"inner").unwrap();
    assert_eq!(s.replacing_any::<_, Error>(top, b"f", symlink), Ok(()));
    assert_eq!(s.readlink(names(&s)[0].unwrap()).unwrap(), b"x");
    assert_eq!(names(&s)[1..], [None, None]);
}
