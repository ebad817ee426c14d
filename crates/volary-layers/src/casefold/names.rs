//! The cached names of directories, by their folded form.

use crate::bounded::Bounded;
use parking_lot::Mutex;
use std::collections::HashMap;
use volary_core::{Cookie, Ctx, DirBuf, Fs, Kind, Mode, Name, NodeId, OpenId, Result, fold};

/// The names of one directory: for each folded name the real ones, sorted.
#[derive(Default)]
struct Dir {
    names: HashMap<Vec<u8>, Vec<Vec<u8>>>,
    weight: usize,
}

impl Dir {
    fn add(&mut self, name: &[u8]) {
        let twins = self.names.entry(fold(name)).or_default();
        if let Err(at) = twins.binary_search_by(|twin| twin.as_slice().cmp(name)) {
            twins.insert(at, name.to_vec());
            self.weight += weight(name);
        }
    }

    fn remove(&mut self, name: &[u8]) {
        let folded = fold(name);
        if let Some(twins) = self.names.get_mut(&folded) {
            twins.retain(|twin| twin != name);
            if twins.is_empty() {
                self.names.remove(&folded);
            }
        }
    }

    fn find(&self, name: Name<'_>) -> Option<Vec<u8>> {
        let twins = self.names.get(&fold(name.as_bytes()))?;
        best(twins, name.as_bytes())
    }
}

/// Returns roughly the memory that a name takes, in bytes.
fn weight(name: &[u8]) -> usize {
    2 * name.len() + 128
}

fn best(twins: &[Vec<u8>], name: &[u8]) -> Option<Vec<u8>> {
    let exact = twins.iter().find(|twin| twin.as_slice() == name);
    exact.or(twins.first()).cloned()
}

/// The names of some directories.
pub(super) struct Names {
    dirs: Bounded<NodeId, Dir>,
    dir_max: usize,
    /// Grows when a directory is forgotten, so that a reading in progress is not cached.
    news: u64,
}

impl Names {
    /// Makes a cache of about `max` bytes.
    pub(super) fn new(max: usize) -> Self {
        Self {
            dirs: Bounded::new(max, |dir: &Dir| dir.weight + 256),
            dir_max: max / 4,
            news: 0,
        }
    }

    /// Returns the name as the directory spells it, or `Some(None)` if it has no such name. `None`
    /// if the directory is not cached.
    pub(super) fn find(&mut self, dir: NodeId, name: Name<'_>) -> Option<Option<Vec<u8>>> {
        self.dirs.get(&dir).map(|dir| dir.find(name))
    }

    pub(super) fn add(&mut self, dir: NodeId, name: &[u8]) {
        if let Some(known) = self.dirs.get(&dir) {
            known.add(name);
            if known.weight > self.dir_max {
                self.dirs.remove(&dir);
            } else {
                self.dirs.grew(weight(name));
            }
        }
    }

    pub(super) fn remove(&mut self, dir: NodeId, name: &[u8]) {
        if let Some(known) = self.dirs.get(&dir) {
            known.remove(name);
        }
    }

    pub(super) fn forget(&mut self, dir: NodeId) {
        self.dirs.remove(&dir);
        self.news += 1;
    }

    pub(super) fn forget_all(&mut self) {
        self.dirs.clear();
        self.news += 1;
    }
}

/// Reads a directory's names, caches them if they are not too many, and looks for one. A caller who
/// may not list the directory finds only an exact match.
pub(super) fn load(
    fs: &Fs,
    names: &Mutex<Names>,
    cx: &Ctx<'_>,
    dir: NodeId,
    name: Name<'_>,
) -> Result<Option<Vec<u8>>> {
    let (news, max) = {
        let names = names.lock();
        (names.news, names.dir_max)
    };
    let open = match fs.open(cx, dir, Mode::Read) {
        Err(e) if e == Kind::Access => {
            let there = fs.lookup(cx, dir, name).is_ok();
            return Ok(there.then(|| name.as_bytes().to_vec()));
        }
        open => open?,
    };
    let read = read(fs, cx, open, max, name);
    fs.close(cx, open)?;
    let (twins, known) = read?;
    let mut names = names.lock();
    if let Some(known) = known.filter(|_| names.news == news) {
        names.dirs.insert(dir, known);
    }
    Ok(best(&twins, name.as_bytes()))
}

/// Returns the names that fold to the same as `name`, sorted, and all names of the directory if
/// they weigh at most `max`.
fn read(
    fs: &Fs,
    cx: &Ctx<'_>,
    open: OpenId,
    max: usize,
    name: Name<'_>,
) -> Result<(Vec<Vec<u8>>, Option<Dir>)> {
    let folded = fold(name.as_bytes());
    let (mut twins, mut known) = (Vec::new(), Some(Dir::default()));
    let mut at = Cookie::START;
    loop {
        let mut out = DirBuf::new(256, 32 << 10, false);
        let end = fs.readdir(cx, open, at, &mut out)?;
        for entry in out.iter() {
            if fold(entry.name) == folded {
                twins.push(entry.name.to_vec());
            }
            if let Some(dir) = &mut known {
                dir.add(entry.name);
            }
            known = known.filter(|dir| dir.weight <= max);
        }
        at = out.last_cookie().unwrap_or(at);
        if end || out.is_empty() {
            twins.sort();
            return Ok((twins, known));
        }
        cx.check_cancel()?;
    }
}
