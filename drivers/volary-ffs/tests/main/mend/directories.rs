//! The kinds of damage of directories.

use super::kinds::{
    Kind,
    On::{All, Typed},
    Preen::{Mends, Refuses},
    kind,
};
use super::made::long_name;

/// The root.
pub(super) const ROOT: &[Kind] = &[
    kind("root's mode gone", ("inode", Refuses, All), |m, image| {
        m.put(image, m.inode(""), 2, 0);
    }),
    kind("root a file", ("root", Refuses, All), |m, image| {
        m.put(image, m.inode(""), 2, 0o100_755);
    }),
    kind("root's mode none", ("inode", Refuses, All), |m, image| {
        m.put(image, m.inode(""), 2, 0o170_755);
    }),
    kind("no root inode", ("root", Refuses, All), |m, image| {
        let len = if m.is_ufs2() { 256 } else { 128 };
        image[m.inode("")..][..len].fill(0);
    }),
    kind(
        "root's block out of range",
        ("bad-block", Refuses, All),
        |m, image| {
            m.point(image, m.pointer("", 0), 0x7f7f_7f7f);
        },
    ),
    kind("root without itself", ("dots", Refuses, All), |m, image| {
        m.put(image, m.block(""), 4, 0);
    }),
    kind("root's parent", ("dots", Refuses, All), |m, image| {
        m.put(image, m.block("") + 12, 4, m.ino("a"));
    }),
    kind(
        "root of size 0",
        ("directory-size", Refuses, All),
        |m, image| {
            m.put(image, m.size(""), 8, 0);
        },
    ),
    kind("root of rubbish", ("entry", Refuses, All), |m, image| {
        image[m.block("")..][..512].fill(0xff);
    }),
];

/// Directories.
pub(super) const NAMES: &[Kind] = &[
    kind("an entry too long", ("entry", Refuses, All), |m, image| {
        m.put(image, m.entry("b", "two") + 4, 2, 0xfffc);
    }),
    kind(
        "an entry of no length",
        ("entry", Refuses, All),
        |m, image| {
            m.put(image, m.entry("b", "two") + 4, 2, 0);
        },
    ),
    kind(
        "an entry of odd length",
        ("entry", Refuses, All),
        |m, image| {
            m.put(image, m.entry("a", "one") + 4, 2, 18);
        },
    ),
    kind("a chunk of rubbish", ("entry", Refuses, All), |m, image| {
        image[m.block("many") + 1024..][..512].fill(0xa5);
    }),
    kind(
        "a name longer than its entry",
        ("entry", Refuses, All),
        |m, image| {
            let entry = m.entry("a", "one");
            image[m.name_len(entry)] = 200;
        },
    ),
    kind(
        "a name of no length",
        ("entry", Refuses, All),
        |m, image| {
            let entry = m.entry("a", "one");
            image[m.name_len(entry)] = 0;
        },
    ),
    kind("a name with a slash", ("name", Refuses, All), |m, image| {
        image[m.entry("a", "one") + 9] = b'/';
    }),
    kind("a name with a zero", ("name", Refuses, All), |m, image| {
        image[m.entry("a", "one") + 9] = 0;
    }),
    kind(
        "two of one name",
        ("same-name", Refuses, All),
        |m, image| {
            let entry = m.entry("many", &long_name(20));
            let other = long_name(21);
            image[entry + 8..][..other.len()].copy_from_slice(other.as_bytes());
        },
    ),
    kind(
        "a name to a free inode",
        ("unallocated", Refuses, All),
        |m, image| {
            m.put(image, m.entry("a", "one"), 4, m.field("fs_ipg") - 1);
        },
    ),
    kind(
        "a name to no inode",
        ("unallocated", Refuses, All),
        |m, image| {
            m.put(image, m.entry("a", "one"), 4, 0x7fff_fff0);
        },
    ),
    kind(
        "an entry of another type",
        ("type", Refuses, Typed),
        |m, image| {
            image[m.entry("a", "one") + 6] = 6;
        },
    ),
    kind("no '.'", ("dots", Refuses, All), |m, image| {
        m.put(image, m.block("b"), 4, 0);
    }),
    kind("'.' elsewhere", ("dots", Refuses, All), |m, image| {
        m.put(image, m.block("b"), 4, m.ino("a"));
    }),
    kind("no '..'", ("dots", Refuses, All), |m, image| {
        m.put(image, m.block("b") + 12, 4, 0);
    }),
    kind("'..' elsewhere", ("dots", Refuses, All), |m, image| {
        m.put(image, m.block("b") + 12, 4, m.ino("many"));
    }),
    kind("'.' by another name", ("dots", Refuses, All), |m, image| {
        image[m.block("b") + 8] = b'x';
    }),
    kind(
        "more of '.' and '..'",
        ("dots", Refuses, All),
        |m, image| {
            for (i, text) in [(20, &b"."[..]), (21, b"..")] {
                let entry = m.entry("many", &long_name(i));
                image[m.name_len(entry)] = text.len() as u8;
                image[entry + 8..][..text.len()].copy_from_slice(text);
                image[entry + 8 + text.len()] = 0;
            }
        },
    ),
    kind("a hole", ("hole", Refuses, All), |m, image| {
        m.point(image, m.pointer("many", 1), 0);
    }),
    kind("a hole at the start", ("hole", Refuses, All), |m, image| {
        m.point(image, m.pointer("many", 0), 0);
    }),
    kind("a second parent", ("twice", Mends, All), |m, image| {
        m.lead(image, m.entry("many", &long_name(3)), m.ino("b"));
    }),
    kind("a third parent", ("twice", Refuses, All), |m, image| {
        for i in [3, 4] {
            let entry = m.entry("many", &long_name(i));
            m.lead(image, entry, m.ino("b"));
        }
    }),
    kind(
        "a directory within itself",
        ("twice", Refuses, All),
        |m, image| {
            for text in ["two", "again"] {
                m.lead(image, m.entry("b", text), m.ino("a"));
            }
        },
    ),
    kind("a ring", ("unconnected", Mends, All), |m, image| {
        m.put(image, m.entry("", "a"), 4, 0);
        m.lead(image, m.entry("b", "two"), m.ino("a"));
    }),
    kind(
        "the root below itself",
        ("twice", Refuses, All),
        |m, image| {
            m.lead(image, m.entry("b", "two"), 2);
        },
    ),
    kind(
        "a directory without a name",
        ("unconnected", Mends, All),
        |m, image| {
            m.put(image, m.entry("", "a"), 4, 0);
        },
    ),
    kind(
        "a file without a name",
        ("unreferenced", Mends, All),
        |m, image| {
            m.put(image, m.entry("", "large"), 4, 0);
        },
    ),
    kind(
        "a symlink without a name",
        ("unreferenced", Mends, All),
        |m, image| {
            m.put(image, m.entry("a", "long"), 4, 0);
        },
    ),
    kind(
        "a fifo without a name",
        ("unreferenced", Mends, All),
        |m, image| {
            m.put(image, m.entry("a", "fifo"), 4, 0);
        },
    ),
    kind(
        "an empty directory without a name",
        ("unconnected", Mends, All),
        |m, image| {
            m.put(image, m.entry("a", "empty"), 4, 0);
        },
    ),
];
