//! Directories: entries, hash trees, names of each inode.

use super::inodes::Seen;
use crate::directory::dir::{Chunk, Entry, can_be_asked_for};
use crate::directory::htree;
use crate::disk::ondisk::{ROOT_INO, iflag};
use crate::inodes::inode::Inode;
use crate::store::Store;
use std::collections::HashSet;
use volary_core::{FileKind, Finding, Kind, Result, Severity};
use volary_ondisk::reporter::{Reporter, damage, ends, met};

/// A directory that was met.
struct Dir {
    parent: usize,
    name: Vec<u8>,
    ino: u32,
}

/// The longest path that is put together, in bytes.
const PATH_MAX: usize = 4096;

/// Returns the path of a directory that was met, or of a name in it.
fn path(dirs: &[Dir], dir: usize, name: Option<&[u8]>) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = name.into_iter().collect();
    let (mut at, mut len) = (dir, 0);
    while let Some(dir) = dirs.get(at).filter(|_| at != 0 && len < PATH_MAX) {
        parts.push(&dir.name);
        len += dir.name.len() + 1;
        at = dir.parent;
    }
    let path: Vec<u8> = parts
        .iter()
        .rev()
        .flat_map(|part| [b"/", *part].concat())
        .collect();
    if path.is_empty() { b"/".to_vec() } else { path }
}

/// Walks all directories from the root, a level at a time, each once.
///
/// # Errors
/// `Interrupted`; `Io`.
pub(crate) fn check(store: &Store, seen: &mut Seen, findings: &mut Reporter<'_>) -> Result<()> {
    let mut walk = Walk {
        store,
        seen,
        findings,
        dirs: vec![Dir {
            parent: 0,
            name: Vec::new(),
            ino: ROOT_INO,
        }],
        met: HashSet::from([ROOT_INO]),
        present: HashSet::new(),
    };
    let mut at = 0;
    while let Some(ino) = walk.dirs.get(at).map(|dir| dir.ino) {
        let (done, all) = (at as u64, walk.seen.dirs);
        walk.findings.progress("directories", done, all)?;
        walk.dir(at, ino)?;
        at += 1;
    }
    Ok(())
}

struct Walk<'a, 'f> {
    store: &'a Store,
    seen: &'a mut Seen,
    findings: &'a mut Reporter<'f>,
    dirs: Vec<Dir>,
    met: HashSet<u32>,
    /// The names of the directory that is being checked.
    present: HashSet<Vec<u8>>,
}

impl Walk<'_, '_> {
    fn tell(&mut self, finding: &Finding, dir: usize, name: Option<&[u8]>) {
        self.findings.tell(&Finding {
            path: Some(path(&self.dirs, dir, name)),
            ..finding.clone()
        });
    }

    fn dir(&mut self, at: usize, ino: u32) -> Result<()> {
        let inode = match self.store.inodes().node_of(ino) {
            Ok(inode) => inode,
            // It was told with its inode.
            Err(e) if !ends(&e) => {
                self.seen.is_partial = true;
                return Ok(());
            }
            Err(e) => return Err(e),
        };
        if inode.has(iflag::ENCRYPT) {
            let words = "the directory is encrypted: its names are not looked at";
            let what = Finding {
                code: "encrypted",
                severity: Severity::Note,
                ..damage(inode.at, words)
            };
            self.tell(&what, at, None);
            self.seen.is_partial = true;
            return Ok(());
        }
        // Its `.`, and the root's `..`, which is its own.
        self.count(inode.ino, if inode.ino == ROOT_INO { 2 } else { 1 });
        self.parent(at, &inode);
        self.present.clear();
        self.chunks(at, &inode)?;
        self.tree(at, &inode);
        for (name, ino) in self.store.fast().added(inode.ino) {
            let entry = Entry {
                ino: *ino,
                kind: None,
                name: name.clone(),
                end: 0,
            };
            self.entry(at, &inode, &entry)?;
        }
        Ok(())
    }

    /// Compares `..` with where the directory was found.
    fn parent(&mut self, at: usize, inode: &Inode) {
        let above = self.dirs.get(at).map_or(0, |dir| dir.parent);
        let above = self.dirs.get(above).map_or(ROOT_INO, |dir| dir.ino);
        let words = match self.store.directory(inode).parent() {
            Ok(parent) if parent == above => return,
            Ok(parent) => format!("'..' leads to inode {parent}, it is in inode {above}"),
            Err(e) => e.to_string(),
        };
        self.tell(
            &Finding {
                code: "dot-dot",
                ..damage(inode.at, words)
            },
            at,
            None,
        );
    }

    fn chunks(&mut self, at: usize, inode: &Inode) -> Result<()> {
        let dir = self.store.directory(inode);
        let (mut start, done) = (0, at as u64);
        while start < dir.end() {
            self.findings
                .progress("directories", done, self.seen.dirs)?;
            match dir.chunk(start) {
                Ok(None) => break,
                Ok(Some(chunk)) => {
                    start = chunk.end();
                    self.entries(at, inode, &chunk)?;
                }
                Err(e) if ends(&e) => return Err(e),
                Err(e) => {
                    self.tell(
                        &Finding {
                            code: "directory",
                            ..met(&e)
                        },
                        at,
                        None,
                    );
                    self.seen.is_partial = true;
                    // A directory that is mostly not there ends at its first hole.
                    if inode.size > inode.sectors.saturating_mul(512) {
                        break;
                    }
                    start = match inode.has(iflag::INLINE_DATA) {
                        true => break,
                        false => dir.chunk_start(start) + self.store.volume().block,
                    };
                }
            }
        }
        Ok(())
    }

    fn entries(&mut self, at: usize, inode: &Inode, chunk: &Chunk) -> Result<()> {
        let dir = self.store.directory(inode);
        let mut place = chunk.start;
        loop {
            match dir.entry(chunk, place) {
                Ok(None) => return Ok(()),
                Ok(Some(entry)) => {
                    place = entry.end;
                    let is_gone = self.store.fast().is_removed(inode.ino, &entry.name);
                    if !entry.is_dot() && !is_gone {
                        self.entry(at, inode, &entry)?;
                    }
                }
                Err(e) => {
                    self.tell(
                        &Finding {
                            code: "entry",
                            ..met(&e)
                        },
                        at,
                        None,
                    );
                    self.seen.is_partial = true;
                    return Ok(());
                }
            }
        }
    }

    fn entry(&mut self, at: usize, inode: &Inode, entry: &Entry) -> Result<()> {
        let name = Some(entry.name.as_slice());
        if !can_be_asked_for(&entry.name) {
            let words = "nothing can be called that; it is not shown";
            self.tell(
                &Finding {
                    code: "name",
                    ..damage(inode.at, words)
                },
                at,
                name,
            );
        }
        if !self.present.insert(entry.name.clone()) {
            let words = "the directory has that name before; this one is not reached";
            self.tell(
                &Finding {
                    code: "same-name",
                    ..damage(inode.at, words)
                },
                at,
                name,
            );
        }
        let below = match self.store.inodes().node_of(entry.ino) {
            Ok(below) => below,
            Err(e) if ends(&e) => return Err(e),
            Err(e) if e == Kind::Stale => {
                let words = format!("leads to inode {}, which is not in use", entry.ino);
                self.tell(
                    &Finding {
                        code: "gone",
                        ..damage(inode.at, words)
                    },
                    at,
                    name,
                );
                return Ok(());
            }
            // It was told with its inode.
            Err(_) => return Ok(()),
        };
        if entry.kind.is_some_and(|kind| Some(kind) != below.kind()) {
            let words = "the entry's type is not the inode's";
            self.tell(
                &Finding {
                    code: "type",
                    ..damage(inode.at, words)
                },
                at,
                name,
            );
        }
        self.count(entry.ino, 1);
        if below.kind() == Some(FileKind::Dir) {
            self.dir_below(at, inode, entry);
        }
        Ok(())
    }

    /// Notes a directory for its turn, and its `..` as a name of the one that it is in.
    fn dir_below(&mut self, at: usize, inode: &Inode, entry: &Entry) {
        self.count(inode.ino, 1);
        if self.met.insert(entry.ino) {
            self.dirs.push(Dir {
                parent: at,
                name: entry.name.clone(),
                ino: entry.ino,
            });
            return;
        }
        let finding = Finding {
            code: "twice",
            ..damage(inode.at, "the directory is in another place as well")
        };
        self.tell(&finding, at, Some(&entry.name));
    }

    fn count(&mut self, ino: u32, more: u32) {
        if let Some(node) = self.seen.nodes.get_mut(&ino) {
            node.found = node.found.saturating_add(more);
        }
    }

    /// Looks whether the hash tree over a directory leads to each of its blocks once.
    fn tree(&mut self, at: usize, inode: &Inode) {
        if !inode.has(iflag::INDEX) || inode.has(iflag::INLINE_DATA) {
            return;
        }
        if let Some(words) = self.tree_is_wrong(inode) {
            self.tell(
                &Finding {
                    code: "htree",
                    ..damage(inode.at, words)
                },
                at,
                None,
            );
        }
    }

    fn tree_is_wrong(&self, inode: &Inode) -> Option<String> {
        let dir = self.store.directory(inode);
        let block = self.store.volume().block;
        let blocks = inode.size / block;
        // What cannot be read was told with the directory's blocks.
        let first = dir.chunk(0).ok()??;
        let root = htree::Root::of(&first.bytes);
        let Some(root) = root.filter(|root| root.levels <= 3) else {
            return Some("the directory has no root of a hash tree".into());
        };
        let mut met = HashSet::from([0]);
        let mut todo = vec![(0u64, 0u8)];
        while let Some((number, depth)) = todo.pop() {
            let chunk = dir.chunk(number * block).ok()??;
            let Some(node) = htree::Node::of(&chunk.bytes, number == 0) else {
                return Some(format!("block {number} is no node of the hash tree"));
            };
            let mut least = 0;
            for (hash, below) in node.entries(&chunk.bytes) {
                let below = u64::from(below);
                if hash < least || below >= blocks || !met.insert(below) {
                    return Some(format!(
                        "block {number} of the hash tree leads to {below} wrongly"
                    ));
                }
                least = hash;
                if depth < root.levels {
                    todo.push((below, depth + 1));
                }
            }
        }
        let missing = blocks.saturating_sub(met.len() as u64);
        (missing > 0).then(|| format!("the hash tree lacks {missing} blocks of the directory"))
    }
}

/// Compares the names of each inode with those that it says it has.
pub(crate) fn links(store: &Store, seen: &Seen, findings: &mut Reporter<'_>) {
    for (ino, node) in seen.nodes.iter().filter(|(_, node)| !node.is_nameless) {
        let at = store.groups().inode_at(*ino).unwrap_or(0);
        // Where directories could not be looked at, names are missing that are there.
        let is_known = !seen.is_partial;
        if node.found == 0 && is_known {
            let words = format!("no path leads to inode {ino}");
            findings.tell(&Finding {
                code: "lost",
                ..damage(at, words)
            });
            continue;
        }
        let is_uncounted = node.is_dir && node.links == 1;
        let differs = u32::from(node.links) != node.found && !is_uncounted;
        if differs && is_known {
            let words = format!("inode {ino} has {} names, says {}", node.found, node.links);
            findings.tell(&Finding {
                code: "links",
                ..damage(at, words)
            });
        }
    }
}
