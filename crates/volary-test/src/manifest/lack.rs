//! Removing what a format cannot keep from a manifest.

use super::{Manifest, split};
use std::collections::{BTreeMap, BTreeSet};
use volary_core::{Caps, FileKind, fold};

/// Something that a format cannot keep.
#[derive(Clone, Copy)]
pub enum Lack {
    /// Hard links: each name gets a node of its own.
    HardLinks,
    /// Symlinks are removed.
    Symlinks,
    /// Fifos, sockets and devices are removed.
    Special,
    /// Permission bits are not compared.
    Modes,
    /// Owners and groups are not compared, though the volume claims `MODES`.
    Owners,
    /// Times are not compared.
    Times,
    /// Times are kept in steps of this many nanoseconds.
    TimesFinerThan(u64),
    /// Link counts are not compared.
    Links,
    /// Entries with longer names, in bytes, are removed.
    NamesOver(usize),
    /// Entries are removed, with everything below them, if the function returns true for their
    /// names.
    Names(fn(&[u8]) -> bool),
    /// Of names that differ only in case, only the first is kept.
    Case,
    /// Larger files are removed.
    FilesOver(u64),
}

impl Manifest {
    /// Removes what a format cannot keep.
    #[must_use]
    pub fn without(mut self, lack: Lack) -> Self {
        match lack {
            Lack::HardLinks => self.part_links(),
            Lack::Symlinks => self.keep_nodes(|kind, _| kind != FileKind::Symlink),
            Lack::Special => {
                self.keep_nodes(|kind, _| {
                    matches!(kind, FileKind::File | FileKind::Dir | FileKind::Symlink)
                });
            }
            Lack::FilesOver(max) => self.keep_nodes(|_, len| len <= max),
            Lack::Modes => self.keeps.modes = false,
            Lack::Owners => self.keeps.owners = false,
            Lack::Times => self.keeps.times = None,
            Lack::TimesFinerThan(step) => self.keeps.times = self.keeps.times.map(|s| s.max(step)),
            Lack::Links => self.keeps.links = false,
            Lack::NamesOver(max) => self.keep_names(|name| name.len() <= max),
            Lack::Names(refused) => self.keep_names(|name| !refused(name)),
            Lack::Case => self.part_cases(),
        }
        self
    }

    /// Removes what a volume with these caps cannot keep.
    #[must_use]
    pub fn fitting(self, caps: &Caps) -> Self {
        let lacks = [
            (Caps::HARD_LINKS, Lack::HardLinks),
            (Caps::SYMLINKS, Lack::Symlinks),
            (Caps::DEVICES, Lack::Special),
            (Caps::MODES, Lack::Modes),
            (Caps::MODES, Lack::Owners),
            (Caps::CASE_SENSITIVE, Lack::Case),
            (Caps::ANY_NAME, Lack::Names(|name| !is_plain(name))),
        ];
        let missing = lacks.into_iter().filter(|(bit, _)| !caps.has(*bit));
        let all = missing.fold(self, |manifest, (_, lack)| manifest.without(lack));
        all.without(Lack::TimesFinerThan(caps.time_step))
            .without(Lack::NamesOver(caps.name_max.into()))
            .without(Lack::FilesOver(caps.size_max))
    }

    /// Removes entries whose names are not `wanted`, with everything below them.
    #[cfg(feature = "smb")]
    pub(crate) fn with_names(mut self, wanted: impl Fn(&[u8]) -> bool) -> Self {
        self.keep_names(wanted);
        self
    }

    fn part_links(&mut self) {
        let mut seen = BTreeSet::new();
        let paths: Vec<_> = self.paths.iter().map(|(p, n)| (p.clone(), *n)).collect();
        for (path, number) in paths {
            if !seen.insert(number) {
                let copy = self.nodes[number].clone();
                self.nodes.push(copy);
                self.paths.insert(path, self.nodes.len() - 1);
            }
        }
    }

    fn keep_nodes(&mut self, keep: impl Fn(FileKind, u64) -> bool) {
        let nodes = self.nodes.clone();
        self.keep(|_, number| {
            let node = &nodes[number];
            keep(node.kind, node.content.len())
        });
    }

    fn keep_names(&mut self, keep: impl Fn(&[u8]) -> bool) {
        self.keep(|path, _| {
            let mut names = path.split(|&b| b == b'/');
            path.is_empty() || names.all(&keep)
        });
    }

    /// Keeps the paths for which `keep` returns true, if their directories are kept too.
    fn keep(&mut self, keep: impl Fn(&[u8], usize) -> bool) {
        let paths = std::mem::take(&mut self.paths);
        self.children = BTreeMap::new();
        for (path, number) in paths {
            let there = path.is_empty() || self.paths.contains_key(split(&path).0);
            if there && keep(&path, number) {
                if path.is_empty() {
                    self.paths.insert(path, number);
                } else {
                    self.name(&path, number);
                }
            }
        }
    }

    fn part_cases(&mut self) {
        let mut seen = BTreeSet::new();
        let paths = self.paths.keys();
        let first: BTreeSet<Vec<u8>> = paths
            .filter(|path| seen.insert(fold(path)))
            .cloned()
            .collect();
        self.keep(|path, _| first.contains(path));
    }
}

/// Returns whether every format can store the name unchanged.
fn is_plain(name: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(name) else {
        return false;
    };
    let odd = |c: char| c.is_control() || "\\:*?\"<>|".contains(c);
    !text.chars().any(odd) && !text.ends_with(['.', ' ']) && !text.starts_with(' ')
}
