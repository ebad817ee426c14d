//! Groups and inodes: checksums, maps, whom blocks belong to.

use crate::content::indirect::Indirect;
use crate::disk::ondisk::{iflag, incompat};
use crate::inodes::inode::Inode;
use crate::scan::{Damaged, Visitor};
use crate::store::Store;
use std::collections::BTreeMap;
use volary_core::{Error, FileKind, Finding, Result, Severity};
use volary_ondisk::Bits;
use volary_ondisk::reporter::{Reporter, damage, ends, met};

/// An inode in use.
#[derive(Clone, Copy)]
pub(crate) struct Node {
    pub(crate) is_dir: bool,
    /// Names that it says it has.
    pub(crate) links: u16,
    /// Names that were found.
    pub(crate) found: u32,
    /// Whether it has no names on purpose.
    pub(crate) is_nameless: bool,
}

/// What was seen of the volume.
#[derive(Default)]
pub(crate) struct Seen {
    /// Clusters in use.
    pub(crate) clusters: Bits,
    pub(crate) nodes: BTreeMap<u32, Node>,
    pub(crate) files: u64,
    pub(crate) dirs: u64,
    /// Whether an inode or a group could not be read. Blocks and names that look unowned may then be
    /// its own.
    pub(crate) is_partial: bool,
}

/// The look at all inodes.
pub(crate) struct Inodes<'a, 'f> {
    store: &'a Store,
    findings: &'a mut Reporter<'f>,
    seen: Seen,
    /// Clusters of the inode that is looked at, where others may share them with it.
    own: Bits,
    /// Blocks of extended attributes, with how many inodes have them, and how many say so.
    shared: BTreeMap<u64, (u32, u32)>,
    /// Clusters of the inode that is looked at.
    taken: u64,
    crossed: bool,
}

impl<'a, 'f> Inodes<'a, 'f> {
    pub(crate) fn new(store: &'a Store, findings: &'a mut Reporter<'f>) -> Self {
        Self {
            store,
            findings,
            seen: Seen::default(),
            own: Bits::default(),
            shared: BTreeMap::new(),
            taken: 0,
            crossed: false,
        }
    }

    /// Ends the look.
    pub(crate) fn seen(self) -> Seen {
        for (block, (found, said)) in &self.shared {
            if found != said {
                let at = block * self.store.volume().block;
                let words = format!("{found} inodes have the extended attributes, they say {said}");
                self.findings.tell(&Finding {
                    code: "xattr-links",
                    ..damage(at, words)
                });
            }
        }
        self.seen
    }

    /// Takes a cluster for the inode; false if another has it.
    fn take(&mut self, cluster: u64) -> bool {
        let is_bigalloc = self.store.volume().cluster > 1;
        if self.seen.clusters.insert(cluster) {
            self.taken += 1;
            if is_bigalloc {
                self.own.insert(cluster);
            }
            return true;
        }
        is_bigalloc && self.own.has(cluster)
    }

    fn attributes(&mut self, inode: &Inode) -> Result<()> {
        if let Err(e) = self.store.xattrs(inode).all() {
            if ends(&e) {
                return Err(e);
            }
            self.findings.tell(&Finding {
                code: "xattr",
                ..met(&e)
            });
        }
        if inode.file_acl == 0 {
            return Ok(());
        }
        let cluster = self.store.volume().cluster_of(inode.file_acl);
        self.taken += 1;
        if let Some(shared) = self.shared.get_mut(&inode.file_acl) {
            shared.0 += 1;
            return Ok(());
        }
        if let Ok((head, _)) = self.store.xattrs(inode).block() {
            let said = head.h_refcount.get();
            self.shared.insert(inode.file_acl, (1, said));
            if !self.seen.clusters.insert(cluster) {
                let words = format!("block {} of its attributes is another's", inode.file_acl);
                self.findings.tell(&Finding {
                    code: "cross-link",
                    ..of(inode, &words)
                });
            }
        }
        Ok(())
    }

    /// Compares what the inode says that it takes with what was found.
    fn count(&mut self, inode: &Inode) {
        let volume = self.store.volume();
        let sectors = self.taken * volume.cluster * (volume.block / 512);
        let has_values = volume.has_incompat(incompat::EA_INODE);
        if sectors != inode.sectors && !has_values && !inode.is_fast {
            let words = format!("takes {sectors} sectors, says {}", inode.sectors);
            self.findings.tell(&Finding {
                code: "i-blocks",
                ..of(inode, &words)
            });
        }
    }

    fn size(&mut self, inode: &Inode) {
        let is_odd = match inode.kind() {
            Some(FileKind::Dir) if !inode.has(iflag::INLINE_DATA) => {
                !inode.size.is_multiple_of(self.store.volume().block)
                    || inode.check_size(self.store.volume()).is_err()
            }
            Some(FileKind::File) if !inode.has(iflag::EXTENTS | iflag::INLINE_DATA) => {
                Indirect::new(self.store.blocks(), inode)
                    .check_reach()
                    .is_err()
            }
            _ => inode.check_size(self.store.volume()).is_err(),
        };
        if is_odd {
            self.findings.tell(&Finding {
                code: "size",
                ..of(inode, &format!("cannot have {} bytes", inode.size))
            });
        }
        if inode.has(iflag::INLINE_DATA)
            && let Err(e) = self.store.content(inode).inline()
        {
            self.findings.tell(&Finding {
                code: "size",
                ..met(&e)
            });
        }
    }
}

impl Visitor for Inodes<'_, '_> {
    fn group(&mut self, number: u32) -> Result<()> {
        let (done, all) = (number.into(), self.store.volume().groups.into());
        self.findings.progress("groups", done, all)
    }

    fn system(&mut self, first: u64, count: u64) {
        let blocks = self.store.blocks();
        if let Err(e) = blocks.check("group descriptor", 0, first, count) {
            self.findings.tell(&Finding {
                code: "group",
                ..met(&e)
            });
            return;
        }
        for block in first..first + count {
            let cluster = self.store.volume().cluster_of(block);
            self.seen.clusters.insert(cluster);
        }
    }

    fn inode(&mut self, inode: &Inode, is_orphan: bool) -> Result<()> {
        (self.taken, self.own, self.crossed) = (0, Bits::default(), false);
        let volume = self.store.volume();
        let is_dir = inode.kind() == Some(FileKind::Dir);
        let is_nameless = is_orphan || volume.is_hidden(inode.ino) || inode.has(iflag::EA_INODE);
        if !is_nameless {
            let count = if is_dir {
                &mut self.seen.dirs
            } else {
                &mut self.seen.files
            };
            *count += 1;
        }
        self.seen.nodes.insert(
            inode.ino,
            Node {
                is_dir,
                links: inode.head.i_links_count.get(),
                found: 0,
                is_nameless,
            },
        );
        if is_orphan {
            let words = format!(
                "inode {} has no name, and goes when the volume is mounted",
                inode.ino
            );
            self.findings.tell(&Finding {
                code: "orphan",
                severity: Severity::Note,
                ..damage(inode.at, words)
            });
        }
        self.size(inode);
        self.attributes(inode)
    }

    fn blocks(&mut self, inode: &Inode, first: u64, count: u64, _: bool) -> Result<bool> {
        let volume = self.store.volume();
        let clusters = volume.cluster_of(first)..=volume.cluster_of(first + (count - 1));
        let mut is_own = true;
        for cluster in clusters {
            is_own &= self.take(cluster);
        }
        if !is_own && !self.crossed {
            self.crossed = true;
            let words = format!("blocks {first} to {} are another's too", first + count - 1);
            self.findings.tell(&Finding {
                code: "cross-link",
                ..of(inode, &words)
            });
        }
        Ok(is_own)
    }

    fn end(&mut self, inode: &Inode, is_whole: bool) -> Result<()> {
        if is_whole {
            self.count(inode);
        } else {
            self.seen.is_partial = true;
        }
        Ok(())
    }

    fn bad(&mut self, what: Damaged, e: Error) -> Result<()> {
        self.seen.is_partial = true;
        let finding = met(&e);
        self.findings.tell(&match what {
            Damaged::Group => Finding {
                code: "group",
                ..finding
            },
            Damaged::Inode => Finding {
                code: "inode",
                ..finding
            },
            Damaged::Map => Finding {
                code: "map",
                ..finding
            },
        });
        Ok(())
    }
}

/// Makes a finding of damage to an inode. Its code is still to be named.
fn of(inode: &Inode, message: &str) -> Finding {
    damage(inode.at, format!("inode {}: {message}", inode.ino))
}
