//! Reading ahead of a walk.

use crate::{Make, kind, root, volume_of};
use parking_lot::Mutex;
use std::sync::Arc;
use volary_core::{Ctx, Fs, Kind, Layer, NodeId, Prefetch, Time};
use volary_mem::{Mem, MemOptions};
use volary_session::{Ahead, Listing, Session};

type Hints = Arc<Mutex<Vec<(Prefetch, Vec<NodeId>)>>>;

/// Notes what is to be read ahead.
struct Notes {
    below: Fs,
    hints: Hints,
    helps: bool,
}

impl Layer for Notes {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn prefetch(&self, _: &Ctx<'_>, nodes: &[NodeId], what: Prefetch) -> bool {
        self.hints.lock().push((what, nodes.to_vec()));
        self.helps
    }
}

/// Returns a session on a volume with `dirs` directories of two files each.
fn noted(helps: bool, dirs: usize) -> (Session, Hints) {
    let hints = Hints::default();
    let below = Mem::attach(MemOptions::default(), Time::EPOCH).unwrap();
    let notes = Notes {
        below,
        hints: Arc::clone(&hints),
        helps,
    };
    let session = root(&volume_of(Arc::new(notes), false));
    for number in 0..dirs {
        let dir = session.dir(session.root(), &format!("d{number:03}"), 0o755);
        session.file(dir, "a", 0o644);
        session.file(dir, "b", 0o644);
    }
    (session, hints)
}

/// Enters all rows, as a walk does.
fn enter_all(session: &Session) -> Vec<NodeId> {
    let listing = Listing::read(session, session.root(), Listing::MAX);
    let (mut ahead, mut ready) = (Ahead::new(session), 0);
    for number in 0..listing.rows.len() {
        ahead.enter(&listing.rows[number..], &mut ready);
    }
    listing.rows.iter().map(|row| row.attr.node).collect()
}

#[test]
fn each_directory_is_read_ahead_once_in_groups_and_then_its_nodes() {
    let (session, hints) = noted(true, 2 * Ahead::GROUP + 1);
    let dirs = enter_all(&session);
    let hints = hints.lock();
    let of = |want| hints.iter().filter(move |hint| hint.0 == want);
    let groups: Vec<&[NodeId]> = of(Prefetch::Entries).map(|hint| &*hint.1).collect();
    let expected: Vec<&[NodeId]> = dirs.chunks(Ahead::GROUP).collect();
    assert_eq!(groups, expected);
    let counts: Vec<usize> = of(Prefetch::Attributes).map(|hint| hint.1.len()).collect();
    assert_eq!(counts, [2 * Ahead::GROUP, 2 * Ahead::GROUP, 2]);
    for (dir, group) in dirs.chunks(Ahead::GROUP).zip(of(Prefetch::Attributes)) {
        let first = session.lookup(dir[0], b"a").unwrap().node;
        assert!(group.1.contains(&first), "{group:?}");
    }
}

#[test]
fn a_driver_that_does_not_read_ahead_is_asked_once() {
    let (session, hints) = noted(false, 2 * Ahead::GROUP);
    enter_all(&session);
    assert_eq!(hints.lock().len(), 1);
}

#[test]
fn what_cannot_be_listed_is_left_to_the_walk() {
    let (session, hints) = noted(true, 1);
    let gone = session.dir(session.root(), "gone", 0o755);
    session.rmdir(session.root(), b"gone").unwrap();
    Ahead::new(&session).dirs(&[gone]);
    let last = hints.lock().last().cloned();
    assert_eq!(last, Some((Prefetch::Attributes, Vec::new())));
    assert_eq!(kind(session.getattr(gone)), Some(Kind::Stale));
}
