//! One node: its handle, its cached attributes, and its users.

use crate::known::attr_cache::{AttrCache, tick};
use crate::known::data::Data;
use crate::wire::proto::{Fattr, Fh, Wcc};
use parking_lot::{Mutex, RwLock};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use volary_core::{Access, Attr, Cred, FileKind, Kind, NodeId, Result};

pub(crate) struct Node {
    pub(crate) id: NodeId,
    pub(crate) fh: Fh,
    pub(crate) kind: FileKind,
    known: Mutex<AttrCache>,
    /// The number of its opens.
    pub(crate) opens: AtomicU32,
    /// Read-locked while it is opened, and write-locked while its last name may be removed.
    pub(crate) going: RwLock<()>,
    /// Its hidden name, while it is open without a name of its own.
    pub(crate) hidden: Mutex<Option<Hidden>>,
    /// Read-locked to read the content, and write-locked to change it.
    pub(crate) io: RwLock<()>,
    data: OnceLock<Data>,
}

/// The hidden entry that keeps an open file without a name of its own.
#[derive(Clone, Debug)]
pub(crate) struct Hidden {
    pub(crate) dir: NodeId,
    pub(crate) name: Vec<u8>,
}

impl Node {
    /// Makes a node with `attr`, from a call made at `asked`. If that time is unknown (0), the
    /// attributes are not valid.
    pub(crate) fn new(id: NodeId, fh: Fh, attr: Fattr, asked: u64) -> Self {
        Self {
            id,
            fh,
            kind: attr.kind,
            known: Mutex::new(AttrCache::new(attr, asked)),
            opens: AtomicU32::new(0),
            going: RwLock::new(()),
            hidden: Mutex::new(None),
            io: RwLock::new(()),
            data: OnceLock::new(),
        }
    }

    /// Returns the data that is read ahead and written behind.
    pub(crate) fn data(&self) -> &Data {
        self.data.get_or_init(Data::default)
    }

    /// Returns the data that is read ahead and written behind, if there ever was any.
    pub(crate) fn data_if_any(&self) -> Option<&Data> {
        self.data.get()
    }

    pub(crate) fn is_open(&self) -> bool {
        self.opens.load(Ordering::SeqCst) > 0
    }

    /// Returns whether this is its hidden name, in `dir`.
    pub(crate) fn is_hidden_as(&self, dir: NodeId, name: &[u8]) -> bool {
        let hidden = self.hidden.lock();
        let here = hidden.as_ref();
        here.is_some_and(|hidden| hidden.dir == dir && hidden.name == name)
    }

    /// Returns the attributes, if they are younger than `age`.
    pub(crate) fn attr(&self, age: Duration) -> Option<Attr> {
        let known = self.known.lock();
        known.is_fresh(age).then(|| self.show(&known))
    }

    /// Returns the attributes, if nothing has made them doubtful since.
    pub(crate) fn believed(&self) -> Option<Attr> {
        let known = self.known.lock();
        known.is_believed().then(|| self.show(&known))
    }

    /// Returns the attributes as the server last gave them.
    pub(crate) fn last_fattr(&self) -> Fattr {
        *self.known.lock().attr()
    }

    fn show(&self, known: &AttrCache) -> Attr {
        self.show_as(known.attr(), known.change())
    }

    fn show_as(&self, a: &Fattr, change: u64) -> Attr {
        let hidden = self.hidden.lock().is_some();
        Attr {
            node: self.id,
            kind: self.kind,
            mode: a.mode,
            // The hidden name is not counted as a link.
            nlink: a.nlink.saturating_sub(hidden.into()),
            uid: a.uid,
            gid: a.gid,
            rdev: a.rdev,
            size: a.size,
            allocated: a.used,
            io_size: 1 << 16,
            atime: a.atime,
            mtime: a.mtime,
            ctime: a.ctime,
            btime: None,
            change,
            dos: None,
        }
    }

    /// Takes the attributes from a call, made at `asked`, that changed nothing.
    ///
    /// # Errors
    /// `Stale` if the handle refers to another node now.
    pub(crate) fn note(&self, attr: &Fattr, asked: u64) -> Result<()> {
        self.answer(attr, asked).map(drop)
    }

    /// Takes the attributes likewise. Returns attributes that the node had at some moment since the
    /// call was made: the given ones, or later ones.
    ///
    /// # Errors
    /// As [`note`](Self::note).
    pub(crate) fn answer(&self, attr: &Fattr, asked: u64) -> Result<Attr> {
        self.check(attr)?;
        let mut known = self.known.lock();
        Ok(match known.answer(attr, asked) {
            None => self.show(&known),
            Some(change) => self.show_as(attr, change),
        })
    }

    fn check(&self, attr: &Fattr) -> Result<()> {
        if attr.kind == self.kind {
            Ok(())
        } else {
            Err(Kind::Stale.into())
        }
    }

    /// Returns whether, as far as is known, no call of ours has changed it since `asked`.
    pub(crate) fn is_unchanged_since(&self, asked: u64) -> bool {
        self.known.lock().is_unchanged_since(asked)
    }

    /// Begins a change by a call of ours.
    pub(crate) fn begin_change(&self) -> Changing<'_> {
        self.known.lock().begin_change();
        Changing {
            node: self,
            is_told: false,
        }
    }

    /// Notes that its content was changed here, before the server knows of it.
    pub(crate) fn touch(&self) {
        self.known.lock().touch();
    }

    /// Makes the cached attributes invalid, and those of calls that were made before.
    pub(crate) fn expire(&self) {
        self.known.lock().expire();
    }

    /// Returns a number that grows when others may have changed the node's entries.
    pub(crate) fn epoch(&self) -> u64 {
        self.known.lock().epoch()
    }

    /// Returns the part of `want` that this caller was granted, if it is cached and younger than
    /// `age`.
    pub(crate) fn rights(&self, cred: &Cred, want: Access, age: Duration) -> Option<Access> {
        self.known.lock().rights(cred, want, age)
    }

    pub(crate) fn note_rights(&self, cred: &Cred, asked: Access, granted: Access) {
        self.known.lock().note_rights(cred, asked, granted);
    }
}

/// A change by a call of ours that is in progress. If it is dropped without [`end`](Self::end), the
/// cached attributes become doubtful.
pub(crate) struct Changing<'a> {
    node: &'a Node,
    is_told: bool,
}

impl Changing<'_> {
    /// Ends the change with the reply of the call.
    ///
    /// # Errors
    /// `Stale` if the handle refers to another node now.
    pub(crate) fn end(mut self, wcc: &Wcc) -> Result<()> {
        let asked = tick();
        let node = self.node;
        let mut known = node.known.lock();
        if let Some(attr) = &wcc.after {
            node.check(attr)?;
        }
        known.take_change(wcc, asked);
        drop(known);
        self.is_told = true;
        Ok(())
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        let mut known = self.node.known.lock();
        if !self.is_told {
            known.forget();
        }
        known.end_change();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU64;
    use volary_core::Time;

    const AGE: Duration = Duration::from_secs(1000);

    fn attr(secs: i64, size: u64) -> Fattr {
        let t = Time::from_secs(secs);
        Fattr {
            kind: FileKind::Dir,
            mode: 0o755,
            nlink: 2,
            uid: 0,
            gid: 0,
            size,
            used: size,
            rdev: 0,
            fileid: 7,
            atime: t,
            mtime: t,
            ctime: t,
        }
    }

    fn node() -> Node {
        let id = NodeId {
            ino: NonZeroU64::MIN,
            generation: 0,
        };
        Node::new(id, Fh::new(b"fh").unwrap(), attr(1, 1), tick())
    }

    #[test]
    fn an_answer_that_was_overtaken_changes_nothing() {
        let node = node();
        let early = tick();
        let wcc = Wcc {
            before: None,
            after: Some(attr(5, 5)),
        };
        node.begin_change().end(&wcc).unwrap();
        node.note(&attr(3, 3), early).unwrap();
        assert_eq!(node.attr(AGE).unwrap().size, 5);
        node.note(&attr(6, 6), tick()).unwrap();
        assert_eq!(node.attr(AGE).unwrap().size, 6);
    }

    #[test]
    fn changes_at_the_same_time_leave_nothing_to_believe() {
        let node = node();
        let (a, b) = (node.begin_change(), node.begin_change());
        let wcc = |secs| Wcc {
            before: None,
            after: Some(attr(secs, 1)),
        };
        a.end(&wcc(2)).unwrap();
        b.end(&wcc(3)).unwrap();
        assert!(node.attr(AGE).is_none());
        node.begin_change().end(&wcc(4)).unwrap();
        assert!(node.attr(AGE).is_some());
    }

    /// Of two writes at the same time, the first to be executed may be answered last. A COMMIT may
    /// be in progress when somebody asks for the file's length.
    #[test]
    fn who_asks_during_a_change_is_not_given_what_is_in_doubt() {
        let node = node();
        let wcc = |size| Wcc {
            before: None,
            after: Some(attr(2, size)),
        };
        let (first, second) = (node.begin_change(), node.begin_change());
        second.end(&wcc(200)).unwrap();
        first.end(&wcc(100)).unwrap();
        let commit = node.begin_change();
        assert_eq!(node.answer(&attr(2, 200), tick()).unwrap().size, 200);
        assert!(node.believed().is_none());
        commit.end(&wcc(200)).unwrap();
        assert_eq!(node.believed().unwrap().size, 200);
    }

    #[test]
    fn what_others_changed_during_a_change_of_ours_leaves_nothing_to_believe() {
        let node = node();
        let ours = node.begin_change();
        assert_eq!(node.answer(&attr(1, 1), tick()).unwrap().size, 1);
        assert!(node.attr(AGE).is_some());
        assert_eq!(node.answer(&attr(7, 70), tick()).unwrap().size, 70);
        assert!(node.attr(AGE).is_none());
        drop(ours);
    }

    #[test]
    fn an_answer_from_before_a_change_of_ours_is_not_believed_after_it() {
        let node = node();
        let early = tick();
        // One of its names was removed.
        node.expire();
        node.note(&attr(1, 1), early).unwrap();
        assert!(node.attr(AGE).is_none());
        node.note(&attr(2, 2), tick()).unwrap();
        assert!(node.attr(AGE).is_some());
        let early = tick();
        // The reply could not be decoded.
        drop(node.begin_change());
        node.note(&attr(2, 2), early).unwrap();
        assert!(node.attr(AGE).is_none());
    }

    #[test]
    fn what_is_seen_during_a_change_of_ours_is_counted_as_one() {
        let node = node();
        let wcc = Wcc {
            before: None,
            after: Some(attr(1, 1)),
        };
        node.begin_change().end(&wcc).unwrap();
        let before = node.believed().unwrap();
        let ours = node.begin_change();
        // The server's clock has not advanced.
        let during = node.answer(&attr(1, 70), tick()).unwrap();
        assert_eq!(during.size, 70);
        assert!(during.change > before.change);
        drop(ours);
    }

    #[test]
    fn the_change_count_grows_though_the_clock_stands() {
        let node = node();
        let first = node.believed().unwrap().change;
        for more in 1..5 {
            let wcc = Wcc {
                before: None,
                after: Some(attr(1, 1)),
            };
            node.begin_change().end(&wcc).unwrap();
            assert_eq!(node.believed().unwrap().change, first + more);
        }
    }

    #[test]
    fn entries_are_others_unless_we_alone_changed_them() {
        let node = node();
        let (epoch, t) = (node.epoch(), Time::from_secs(1));
        let ours = Wcc {
            before: Some((t, t)),
            after: Some(attr(2, 2)),
        };
        node.begin_change().end(&ours).unwrap();
        assert_eq!(node.epoch(), epoch);
        node.begin_change().end(&ours).unwrap();
        let same = node.epoch();
        node.note(&attr(9, 9), tick()).unwrap();
        assert!(node.epoch() > same);
    }

    #[test]
    fn a_handle_of_something_else_is_stale() {
        let node = node();
        let other = Fattr {
            kind: FileKind::File,
            ..attr(1, 1)
        };
        assert_eq!(node.note(&other, tick()).unwrap_err(), Kind::Stale);
    }

    #[test]
    fn rights_are_each_callers_own() {
        let (node, a, b) = (node(), Cred::new(1, 1), Cred::new(2, 2));
        node.note_rights(&a, Access::READ.and(Access::WRITE), Access::READ);
        assert_eq!(node.rights(&a, Access::WRITE, AGE), Some(Access::default()));
        assert_eq!(node.rights(&a, Access::READ, AGE), Some(Access::READ));
        assert_eq!(node.rights(&a, Access::EXEC, AGE), None);
        assert_eq!(node.rights(&b, Access::READ, AGE), None);
    }
}
