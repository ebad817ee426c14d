//! The kinds of damage: what is done, the code of what is found, what preening does.

use super::directories::{NAMES, ROOT};
use super::made::{Made, long_name};

/// What `-p` does: damage is not for it, what a power cut leaves is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preen {
    Refuses,
    Mends,
}
use Preen::{Mends, Refuses};

/// Which volumes it can be done to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum On {
    All,
    /// Those whose entries have types.
    Typed,
    Ufs2,
}
use On::{All, Typed, Ufs2};

pub(super) struct Kind {
    pub(super) what: &'static str,
    pub(super) code: &'static str,
    pub(super) preen: Preen,
    pub(super) on: On,
    pub(super) act: fn(&Made, &mut [u8]),
}

pub(super) const fn kind(
    what: &'static str,
    (code, preen, on): (&'static str, Preen, On),
    act: fn(&Made, &mut [u8]),
) -> Kind {
    Kind {
        what,
        code,
        preen,
        on,
        act,
    }
}

/// The superblock, its replicas, and what is summed up.
const HEADS: &[Kind] = &[
    kind("no superblock", ("superblock", Refuses, All), |m, image| {
        image[m.head()..][..1376].fill(0);
    }),
    kind(
        "superblock's magic",
        ("superblock", Refuses, All),
        |m, image| {
            image[m.head() + 1372] ^= 0xff;
        },
    ),
    kind("block size", ("superblock", Refuses, All), |m, image| {
        m.put(image, m.head() + 48, 4, 5000);
    }),
    kind("group size", ("superblock", Refuses, All), |m, image| {
        m.put(image, m.head() + 188, 4, 77);
    }),
    kind("no replica", ("replica", Refuses, All), |m, image| {
        image[m.replica(1)..][..1376].fill(0);
    }),
    kind(
        "another's replica",
        ("replica", Refuses, All),
        |m, image| {
            m.put(image, m.replica(1) + 188, 4, 64);
        },
    ),
    kind("totals", ("totals", Mends, All), |m, image| {
        let field = if m.is_old() { 192 } else { 1008 };
        image[m.head() + field..][..16].fill(0);
    }),
    kind("not cleanly left", ("dirty", Mends, All), |m, image| {
        image[m.head() + 209] = 0;
    }),
    kind("summary area", ("summary", Mends, All), |m, image| {
        let field = if m.is_old() {
            "fs_old_csaddr"
        } else {
            "fs_csaddr"
        };
        let at = m.field(field) as usize * 512;
        image[at..at + 16].fill(1);
    }),
];

/// Cylinder groups: head, maps, counts.
const GROUPS: &[Kind] = &[
    kind("group's magic", ("group", Refuses, All), |m, image| {
        m.put(image, m.group(1) + 4, 4, 0);
    }),
    kind("group's number", ("group", Refuses, All), |m, image| {
        m.put(image, m.group(1) + 12, 4, 7);
    }),
    kind("group's length", ("group", Refuses, All), |m, image| {
        m.put(image, m.group(1) + 20, 4, 8);
    }),
    kind("group of rubbish", ("group", Refuses, All), |m, image| {
        image[m.group(1)..][..512].fill(0xee);
    }),
    kind(
        "first group of zeros",
        ("group", Refuses, All),
        |m, image| {
            image[m.group(0)..][..1024].fill(0);
        },
    ),
    kind(
        "place of the inode map",
        ("group", Refuses, All),
        |m, image| {
            m.put(image, m.group(0) + 92, 4, 1 << 20);
        },
    ),
    kind(
        "place of the free map",
        ("group", Refuses, All),
        |m, image| {
            m.put(image, m.group(0) + 96, 4, 3);
        },
    ),
    kind(
        "taken, and free in the map",
        ("free-map", Mends, All),
        |m, image| {
            image[m.map(0, 96)..][..100].fill(0xff);
        },
    ),
    kind(
        "free, and taken in the map",
        ("lost-blocks", Mends, All),
        |m, image| {
            image[m.map(0, 96) + 80..][..20].fill(0);
        },
    ),
    kind(
        "inodes in use, and free",
        ("inode-map", Mends, All),
        |m, image| {
            image[m.map(0, 92)] = 0;
        },
    ),
    kind(
        "free inodes, and in use",
        ("inode-map", Mends, All),
        |m, image| {
            let at = m.map(1, 92);
            let partly = image[at..]
                .iter()
                .position(|byte| ![0, 0xff].contains(byte));
            image[at + partly.expect("a byte of both")] = 0xff;
        },
    ),
    kind("group's sums", ("summary", Mends, All), |m, image| {
        image[m.group(1) + 24..][..16].fill(1);
    }),
    kind(
        "counts of free runs",
        ("summary", Mends, All),
        |m, image| {
            image[m.group(0) + 52..][..32].fill(0);
        },
    ),
    kind("rotors", ("summary", Mends, All), |m, image| {
        image[m.group(0) + 40..][..12].fill(0x7e);
    }),
    kind("map of clusters", ("summary", Mends, Typed), |m, image| {
        image[m.map(0, 108) + 2] ^= 0x55;
    }),
    kind(
        "counts of clusters",
        ("summary", Mends, Typed),
        |m, image| {
            image[m.map(1, 104) + 4..][..8].fill(3);
        },
    ),
];

/// Fields of inodes.
const INODES: &[Kind] = &[
    kind(
        "a mode that is none",
        ("inode", Refuses, All),
        |m, image| {
            m.put(image, m.inode("one"), 2, 0xffff);
        },
    ),
    kind("mode gone", ("inode", Refuses, All), |m, image| {
        m.put(image, m.inode("one"), 2, 0);
    }),
    kind(
        "directory's mode gone",
        ("inode", Refuses, All),
        |m, image| {
            m.put(image, m.inode("b"), 2, 0);
        },
    ),
    kind(
        "a file as a directory",
        ("inode", Refuses, All),
        |m, image| {
            m.put(image, m.inode("two"), 2, 0o40_755);
        },
    ),
    kind(
        "a directory as a file",
        ("inode", Refuses, Typed),
        |m, image| {
            m.put(image, m.inode("b"), 2, 0o100_755);
        },
    ),
    kind(
        "a size past all pointers",
        ("inode", Refuses, All),
        |m, image| {
            m.put(image, m.size("large"), 8, 0x7f7f_7f7f_7f7f_7f7f);
        },
    ),
    kind(
        "a size past the last piece",
        ("bad-block", Refuses, All),
        |m, image| {
            m.put(image, m.size(&long_name(59)), 8, 4096);
        },
    ),
    kind(
        "a size before the last blocks",
        ("beyond-end", Mends, All),
        |m, image| {
            m.put(image, m.size("large"), 8, 60_000);
        },
    ),
    kind(
        "a size before all indirect blocks",
        ("beyond-end", Mends, All),
        |m, image| {
            m.put(image, m.size("double"), 8, 5000);
        },
    ),
    kind(
        "a directory's odd size",
        ("directory-size", Refuses, All),
        |m, image| {
            m.put(image, m.size("a"), 8, 500);
        },
    ),
    kind(
        "a directory of size 0",
        ("directory-size", Refuses, All),
        |m, image| {
            m.put(image, m.size("b"), 8, 0);
        },
    ),
    kind(
        "a directory's size past its fragments",
        ("directory-size", Refuses, All),
        |m, image| {
            m.put(image, m.size("b"), 8, 4096);
        },
    ),
    kind(
        "a directory's size far past its fragments",
        ("directory-size", Refuses, All),
        |m, image| {
            m.put(image, m.size("a"), 8, 512 + (1 << 33));
        },
    ),
    kind(
        "count of sectors",
        ("block-count", Mends, All),
        |m, image| {
            m.put(image, m.blocks("one"), 4, 0x0101_0101);
        },
    ),
    kind(
        "a directory's count of sectors",
        ("block-count", Mends, All),
        |m, image| {
            let len = if m.is_ufs2() { 8 } else { 4 };
            m.put(image, m.blocks("many"), len, 1);
        },
    ),
    kind("too many links", ("link-count", Mends, All), |m, image| {
        m.put(image, m.inode("one") + 2, 2, 9);
    }),
    kind("too few links", ("link-count", Refuses, All), |m, image| {
        m.put(image, m.inode("one") + 2, 2, 1);
    }),
    kind(
        "a directory without links",
        ("link-count", Refuses, All),
        |m, image| {
            m.put(image, m.inode("a") + 2, 2, 0);
        },
    ),
    kind(
        "links below zero",
        ("link-count", Refuses, All),
        |m, image| {
            m.put(image, m.inode("two") + 2, 2, 0xfff0);
        },
    ),
    kind(
        "a symlink longer than its inode",
        ("bad-block", Refuses, Typed),
        |m, image| {
            let at = m.pointer("short", 0);
            image[at..at + 24].fill(b'/');
            m.put(image, m.size("short"), 8, 3000);
            m.put(image, m.blocks("short"), 4, 8);
        },
    ),
    kind(
        "a file as a snapshot",
        ("flags", Refuses, Typed),
        |m, image| {
            let at = m.inode("two") + if m.is_ufs2() { 88 } else { 100 };
            m.put(image, at, 4, 0x0020_0000);
        },
    ),
    kind("attributes' size", ("inode", Refuses, Ufs2), |m, image| {
        m.put(image, m.inode("one") + 92, 4, 0x7fff_ffff);
    }),
    kind(
        "attributes' block",
        ("bad-block", Refuses, Ufs2),
        |m, image| {
            m.put(image, m.inode("one") + 96, 8, 0x7f7f_7f7f);
        },
    ),
    kind(
        "attributes of rubbish",
        ("attributes", Refuses, Ufs2),
        |m, image| {
            let at = m.leads(m.inode("one") + 96);
            image[at..at + 64].fill(0x77);
        },
    ),
];

/// Block pointers.
const POINTERS: &[Kind] = &[
    kind(
        "a block out of range",
        ("bad-block", Refuses, All),
        |m, image| {
            m.point(image, m.pointer("one", 0), 0x7f7f_7f7f);
        },
    ),
    kind(
        "a block of all ones",
        ("bad-block", Refuses, All),
        |m, image| {
            let at = m.pointer("large", 3);
            image[at..at + m.pointer_len()].fill(0xff);
        },
    ),
    kind(
        "a block that begins within one",
        ("bad-block", Refuses, All),
        |m, image| {
            let at = m.pointer("large", 3);
            m.point(image, at, m.leads(at) as u64 / 512 + 3);
        },
    ),
    kind(
        "an indirect block out of range",
        ("bad-block", Refuses, All),
        |m, image| {
            m.point(image, m.pointer("large", 12), 0x7f7f_7f7f);
        },
    ),
    kind(
        "a pointer of one out of range",
        ("bad-block", Refuses, All),
        |m, image| {
            let at = m.leads(m.pointer("large", 12));
            m.point(image, at + 3 * m.pointer_len(), 0x7f7f_7f7f);
        },
    ),
    kind(
        "a double one out of range",
        ("bad-block", Refuses, All),
        |m, image| {
            m.point(image, m.pointer("double", 13), 0x7f7f_7f7f);
        },
    ),
    kind(
        "a pointer of a double one",
        ("bad-block", Refuses, All),
        |m, image| {
            let at = m.leads(m.pointer("double", 13));
            image[at..at + 4096].fill(0x7f);
        },
    ),
    kind(
        "a pointer below a double one",
        ("bad-block", Refuses, All),
        |m, image| {
            let double = m.leads(m.pointer("double", 13));
            let each = double..double + 4096;
            let single = each.step_by(m.pointer_len()).find(|&at| m.leads(at) != 0);
            let at = m.leads(single.expect("a pointer"));
            image[at..at + 4096].fill(0x7f);
        },
    ),
    kind(
        "a triple one out of range",
        ("bad-block", Refuses, All),
        |m, image| {
            m.put(image, m.size("large"), 8, 6 << 30);
            m.point(image, m.pointer("large", 14), 0x7f7f_7f7f);
        },
    ),
    kind(
        "a block behind the end",
        ("beyond-end", Mends, All),
        |m, image| {
            m.point(image, m.pointer("one", 5), 4000);
        },
    ),
    kind(
        "a triple one behind the end",
        ("beyond-end", Mends, All),
        |m, image| {
            m.point(image, m.pointer("one", 14), 4000);
        },
    ),
    kind(
        "one block, two files",
        ("duplicate-blocks", Refuses, All),
        |m, image| {
            m.point(image, m.pointer("two", 0), m.block("large") as u64 / 512);
        },
    ),
    kind(
        "one block, three files",
        ("duplicate-blocks", Refuses, All),
        |m, image| {
            for text in ["two", "double"] {
                m.point(image, m.pointer(text, 0), m.block("large") as u64 / 512);
            }
        },
    ),
    kind(
        "one block, twice in a file",
        ("duplicate-blocks", Refuses, All),
        |m, image| {
            m.point(image, m.pointer("large", 1), m.block("large") as u64 / 512);
        },
    ),
    kind(
        "a file's in a directory's",
        ("duplicate-blocks", Refuses, All),
        |m, image| {
            let at = m.block("b") / 4096 * 8;
            m.point(image, m.pointer("large", 2), at as u64);
        },
    ),
    kind(
        "a directory's in a file's",
        ("duplicate-blocks", Refuses, All),
        |m, image| {
            m.point(image, m.pointer("many", 1), m.block("large") as u64 / 512);
        },
    ),
    kind(
        "a file's among the inodes",
        ("duplicate-blocks", Refuses, All),
        |m, image| {
            let at = m.inode("") / 4096 * 8;
            m.point(image, m.pointer("large", 4), at as u64);
        },
    ),
    kind(
        "a file's in the first superblock",
        ("duplicate-blocks", Refuses, All),
        |m, image| {
            m.point(image, m.pointer("large", 4), m.head() as u64 / 512);
        },
    ),
    kind(
        "an indirect block, two files",
        ("duplicate-blocks", Refuses, All),
        |m, image| {
            let at = m.leads(m.pointer("large", 12)) as u64 / 512;
            m.point(image, m.pointer("double", 12), at);
        },
    ),
    kind(
        "an indirect block that leads to itself",
        ("duplicate-blocks", Refuses, All),
        |m, image| {
            let first = m.leads(m.pointer("large", 12));
            let each = (first..first + 4096).step_by(m.pointer_len());
            each.for_each(|at| m.point(image, at, first as u64 / 512));
        },
    ),
    kind(
        "an indirect block among data",
        ("bad-block", Refuses, All),
        |m, image| {
            m.point(
                image,
                m.pointer("double", 12),
                m.block("large") as u64 / 512,
            );
        },
    ),
    kind(
        "an indirect block among the data of double, one number in range",
        ("duplicate-blocks", Refuses, All),
        |m, image| {
            let data = m.block("double");
            m.point(image, data, 4000);
            m.point(image, m.pointer("large", 12), data as u64 / 512);
        },
    ),
    kind(
        "an indirect block among the data of double, all numbers behind the end",
        ("duplicate-blocks", Refuses, All),
        |m, image| {
            let data = m.block("double");
            m.point(image, data, 0);
            m.put(image, m.size("large"), 8, 13 * 4096);
            m.point(image, m.pointer("large", 12), data as u64 / 512);
        },
    ),
];

/// Returns all of them that can be done to a volume.
pub(super) fn kinds(m: &Made) -> impl Iterator<Item = &'static Kind> {
    let (typed, ufs2) = (!m.is_old(), m.is_ufs2());
    let all = [HEADS, ROOT, GROUPS, INODES, POINTERS, NAMES];
    all.into_iter().flatten().filter(move |kind| match kind.on {
        All => true,
        Typed => typed,
        Ufs2 => ufs2,
    })
}
