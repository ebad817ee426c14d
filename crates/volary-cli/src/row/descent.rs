//! Walks through a directory and all below it.

use super::{LISTING_MAX, Row, Seen, readable, sort};
use crate::exit::{Done, Fail};
use crate::volumes::At;
use std::vec::IntoIter;
use volary::{Ahead, Attr, FileKind, Follow, Session};

/// A walk. It keeps one path, and of each directory on it the entries that are still to come.
pub(crate) struct Descent<'a> {
    session: &'a Session,
    at: At,
    seen: Seen,
    ahead: Ahead,
    levels: Vec<Level>,
    /// About what the entries take in memory, in bytes.
    bytes: usize,
}

struct Level {
    rows: IntoIter<Row>,
    /// The length of the directory's path.
    path_len: usize,
    bytes: usize,
    /// Directories among the rows that were read ahead.
    ready: usize,
}

impl<'a> Descent<'a> {
    /// Returns a walk that stands at `at`.
    pub(crate) fn new(session: &'a Session, at: &At) -> Self {
        Self {
            session,
            at: at.clone(),
            seen: Seen::default(),
            ahead: Ahead::new(session),
            levels: Vec::new(),
            bytes: 0,
        }
    }

    /// Returns where it stands.
    pub(crate) fn at(&self) -> &At {
        &self.at
    }

    /// Returns how many directories lead to where it stands.
    pub(crate) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Returns whether no other entry of the directory comes after this one.
    pub(crate) fn is_last(&self) -> bool {
        let level = self.levels.last();
        level.is_none_or(|level| level.rows.as_slice().is_empty())
    }

    /// Enters the directory where it stands: `told` gets what can be read of it, and takes out what
    /// the walk is not to go on to. What cannot be read is told to `failed`.
    ///
    /// # Errors
    /// Of `told` and `failed`.
    pub(crate) fn enter(
        &mut self,
        dir: &Attr,
        failed: &mut dyn FnMut(Fail) -> Done,
        told: &mut dyn FnMut(&At, &mut Vec<Row>) -> Done,
    ) -> Done {
        if let Err(fail) = self.seen.enter(&self.at, dir) {
            return failed(fail);
        }
        if self.levels.is_empty() {
            self.ahead.dirs(&[dir.node]);
        }
        let max = LISTING_MAX.saturating_sub(self.bytes);
        let listing = readable(self.session, dir, &self.at, max, failed)?;
        let (mut rows, bytes) = (listing.rows, listing.bytes);
        told(&self.at, &mut rows)?;
        self.bytes += bytes;
        self.levels.push(Level {
            rows: rows.into_iter(),
            path_len: self.at.path.len(),
            bytes,
            ready: 0,
        });
        Ok(())
    }

    /// Goes to the next entry of the directories that were entered, the deepest first.
    pub(crate) fn next(&mut self) -> Option<Row> {
        while let Some(level) = self.levels.last_mut() {
            self.at.path.truncate(level.path_len);
            let rows = level.rows.as_slice();
            if rows
                .first()
                .is_some_and(|row| row.attr.kind == FileKind::Dir)
            {
                self.ahead.enter(rows, &mut level.ready);
            }
            if let Some(row) = level.rows.next() {
                self.at.enter(&row.name);
                return Some(row);
            }
            self.bytes -= level.bytes;
            self.levels.pop();
        }
        None
    }
}

/// Calls `each` for a place and, if it is a directory, for all below it,
/// sorted, the directory before what is in it. Symlinks below are not followed.
///
/// # Errors
/// Of `each`; what cannot be read is reported to `failed`.
pub(crate) fn descend(
    session: &Session,
    at: &At,
    each: &mut dyn FnMut(&At, &Attr, usize) -> Done,
    failed: &mut dyn FnMut(Fail) -> Done,
) -> Done {
    let top = session
        .walk(&at.path, Follow::No)
        .map_err(|e| Fail::at(at, &e))?;
    let mut descent = Descent::new(session, at);
    let mut attr = top.attr;
    loop {
        each(descent.at(), &attr, descent.depth())?;
        if attr.kind == FileKind::Dir {
            descent.enter(&attr, failed, &mut |_, rows| {
                sort(rows);
                Ok(())
            })?;
        }
        match descent.next() {
            Some(row) => attr = row.attr,
            None => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volary::{Attach, Cred, SetAttr, Source, Time, Volume, VolumeOptions};

    #[test]
    fn a_walk_keeps_names_and_one_path() {
        let source = Source::Memory { size: None };
        let opened = volary::open_volume(&source, &Attach::default(), Time::EPOCH).unwrap();
        let volume = Volume::new(opened.fs, VolumeOptions::new("mem", || Time::EPOCH));
        let session = volume.session(Cred::root());
        let (levels, count) = (10, 100);
        let set = SetAttr::mode(0o755);
        let top = session.mkdir(session.root(), b"top", &set).unwrap();
        let mut dir = top.node;
        for _ in 0..levels {
            dir = session.mkdir(dir, &[b'd'; 250], &set).unwrap().node;
            for number in 0..count {
                let name = format!("entry{number}");
                session.mkdir(dir, name.as_bytes(), &set).unwrap();
            }
        }
        let at = At::parse("mem:".as_ref())
            .unwrap()
            .with_path(b"/top".to_vec());
        let mut descent = Descent::new(&session, &at);
        let mut attr = top.attr;
        let (mut met, mut deepest, mut most) = (0, 0, 0);
        loop {
            descent.enter(&attr, &mut Err, &mut |_, _| Ok(())).unwrap();
            most = most.max(descent.bytes);
            let Some(row) = descent.next() else { break };
            assert_eq!(descent.at().name(), row.name);
            deepest = deepest.max(descent.depth());
            met += 1;
            attr = row.attr;
        }
        assert_eq!((met, deepest), (levels * (count + 1), levels + 1));
        let names = met * (size_of::<Row>() + 32) + levels * 250;
        assert!(most <= names, "{most} {names}");
        assert_eq!((descent.bytes, &*descent.at().path), (0, &b"/top"[..]));
    }
}
