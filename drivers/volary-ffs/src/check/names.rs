//! Phases 2 to 4: path names, connectivity, reference counts.

use super::findings::{Findings, finding};
use super::inodes::Inodes;
use crate::blocks::Reader;
use crate::dir::{DAMAGE_MAX, Dir};
use crate::inode::Inode;
use crate::ondisk::UFS_ROOTINO;
use std::collections::HashMap;
use volary_core::{Error, FileKind, Finding, Kind, Name, Result, Severity};

/// The longest path that is put together, in bytes.
const PATH_MAX: usize = 4096;

/// Walks the tree from the root, and tells of directories that were not met.
///
/// # Errors
/// `Interrupted`; `Io`.
pub(super) fn check(
    reader: Reader<'_>,
    inodes: &mut Inodes,
    findings: &mut Findings<'_>,
) -> Result<()> {
    let mut names = Names {
        reader,
        inodes,
        findings,
        paths: HashMap::new(),
    };
    names.meet(UFS_ROOTINO, UFS_ROOTINO);
    let mut todo = vec![UFS_ROOTINO];
    let mut done = 0;
    while let Some(ino) = todo.pop() {
        done += 1;
        names.findings.progress("directories", done, 0)?;
        names.directory(ino, &mut todo)?;
    }
    names.unconnected();
    Ok(())
}

struct Names<'a, 'b> {
    reader: Reader<'a>,
    inodes: &'a mut Inodes,
    findings: &'a mut Findings<'b>,
    /// Directories that were met: their name, and the one that holds them.
    paths: HashMap<u32, (u32, Vec<u8>)>,
}

impl Names<'_, '_> {
    /// Notes which directory holds a directory; whether it was the first.
    fn meet(&mut self, ino: u32, parent: u32) -> bool {
        match self.inodes.all.get_mut(&ino) {
            Some(seen) if seen.parent == 0 => {
                seen.parent = parent;
                true
            }
            _ => false,
        }
    }

    /// The path of a directory, or of a name in it.
    fn path(&self, dir: u32, name: Option<&[u8]>) -> Vec<u8> {
        let mut parts: Vec<&[u8]> = name.into_iter().collect();
        let (mut at, mut len) = (dir, 0);
        while let Some((parent, name)) = self.paths.get(&at).filter(|_| len < PATH_MAX) {
            parts.push(name);
            len += name.len() + 1;
            at = *parent;
        }
        let mut path = Vec::new();
        for part in parts.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(part);
        }
        if path.is_empty() {
            path.push(b'/');
        }
        path
    }

    fn tell(&mut self, path: Vec<u8>, finding: Finding) {
        self.findings.tell(&Finding {
            path: Some(path),
            ..finding
        });
    }

    /// Goes through one directory.
    fn directory(&mut self, ino: u32, todo: &mut Vec<u32>) -> Result<()> {
        let inode = match self.reader.inode(ino.into()) {
            Ok(inode) => inode,
            Err(e) if e == Kind::Io => return Err(e),
            // Phase 1 has told of it.
            Err(_) => return Ok(()),
        };
        let mut dir = Dir::new(self.reader, &inode)?;
        if !inode.size.is_multiple_of(512) || inode.size == 0 {
            let message = format!("the directory's size is {}, no multiple of 512", inode.size);
            let odd = Finding {
                code: "directory-size",
                ..finding(Severity::Damage, inode.at, message)
            };
            self.tell(self.path(ino, None), odd);
        }
        let (mut at, mut dots, mut damaged) = (0, 0, 0);
        while at < inode.size && damaged < DAMAGE_MAX {
            match dir.entry(at) {
                Ok(None) => break,
                Ok(Some(entry)) => {
                    at = entry.end;
                    let (leads, kind, here) = (entry.ino, entry.kind, entry.at);
                    if !entry.is_used() {
                        continue;
                    }
                    let name = entry.name.to_vec();
                    if entry.is_dots() {
                        dots += 1;
                        self.dots(&inode, &name, leads);
                    } else {
                        self.entry(&inode, &name, leads, kind, here, todo);
                    }
                }
                Err(e) if e == Kind::Corrupt => {
                    self.bad_entry(&inode, &e);
                    damaged += 1;
                    at = Dir::next_chunk(at);
                }
                Err(e) => return Err(e),
            }
        }
        if dots != 2 {
            let message = format!("the directory has {dots} entries of itself and of its parent");
            let missing = Finding {
                code: "dots",
                ..finding(Severity::Damage, inode.at, message)
            };
            self.tell(self.path(ino, None), missing);
        }
        Ok(())
    }

    fn bad_entry(&mut self, dir: &Inode, e: &Error) {
        let at = e.as_corrupt().map_or(dir.at, |c| c.offset);
        let bad = Finding {
            code: "entry",
            ..finding(Severity::Damage, at, e.to_string())
        };
        self.tell(self.path(dir.ino, None), bad);
    }

    /// `.` and `..`, which count as links.
    fn dots(&mut self, dir: &Inode, name: &[u8], leads: u32) {
        let expected = match name {
            b"." => Some(dir.ino),
            _ => self.inodes.all.get(&dir.ino).map(|seen| seen.parent),
        };
        if let Some(seen) = self.inodes.all.get_mut(&leads) {
            seen.found = seen.found.saturating_add(1);
        }
        if expected != Some(leads) {
            let message = format!(
                "'{}' leads to inode {leads}, not to {}",
                volary_core::escape(name),
                expected.unwrap_or(0)
            );
            let wrong = Finding {
                code: "dots",
                ..finding(Severity::Damage, dir.at, message)
            };
            self.tell(self.path(dir.ino, None), wrong);
        }
    }

    fn entry(
        &mut self,
        dir: &Inode,
        name: &[u8],
        leads: u32,
        kind: Option<FileKind>,
        at: u64,
        todo: &mut Vec<u32>,
    ) {
        let path = self.path(dir.ino, Some(name));
        let damage = |code: &'static str, message: String| Finding {
            code,
            ..finding(Severity::Damage, dir.at, message)
        };
        if Name::new(name).is_err() {
            let message =
                format!("the name at byte {at} of the directory cannot be; it is not shown");
            self.tell(path.clone(), damage("name", message));
        }
        let Some(seen) = self.inodes.all.get_mut(&leads) else {
            let message = format!("it leads to inode {leads}, which is not in use");
            self.tell(path, damage("unallocated", message));
            return;
        };
        seen.found = seen.found.saturating_add(1);
        let is = seen.kind;
        if kind.is_some_and(|kind| kind != is) {
            let message = format!("inode {leads} is another kind of node than its entry says");
            self.tell(path.clone(), damage("type", message));
        }
        if is != FileKind::Dir {
            return;
        }
        if self.meet(leads, dir.ino) {
            self.paths.insert(leads, (dir.ino, name.to_vec()));
            todo.push(leads);
        } else {
            let message = format!("directory {leads} has another name as well");
            self.tell(path, damage("twice", message));
        }
    }

    /// Phase 3.
    fn unconnected(&mut self) {
        let lost = self.inodes.all.iter();
        let lost = lost.filter(|(_, seen)| seen.kind == FileKind::Dir && seen.parent == 0);
        for (&ino, _) in lost {
            let at = self.reader.volume.inode_at(ino.into()).unwrap_or(0);
            self.findings.tell(&Finding {
                code: "unconnected",
                ..finding(
                    Severity::Damage,
                    at,
                    format!("no path leads to directory {ino}"),
                )
            });
        }
    }
}

/// Phase 4: links that were found against those that inodes say they have.
pub(super) fn check_links(reader: Reader<'_>, inodes: &Inodes, findings: &mut Findings<'_>) {
    for (&ino, seen) in &inodes.all {
        let said = u32::try_from(seen.nlink).unwrap_or(0);
        let at = reader.volume.inode_at(ino.into()).unwrap_or(0);
        if seen.kind == FileKind::Dir && seen.parent == 0 || said == seen.found && said > 0 {
            continue;
        }
        let message = match seen.found {
            0 => format!("inode {ino} is in use, and no name leads to it"),
            found => format!("inode {ino} has {found} links, and says {}", seen.nlink),
        };
        let (code, severity) = match seen.found {
            0 => ("unreferenced", Severity::Crash),
            found if found < said => ("link-count", Severity::Crash),
            _ => ("link-count", Severity::Damage),
        };
        findings.tell(&Finding {
            code,
            ..finding(severity, at, message)
        });
    }
}
