//! Kinds of damage.

use crate::check::base::{KINDS, PAPER, UNIX};
use crate::check::image::Image;

/// On which kinds of volumes a kind of damage can be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    All,
    Fat32,
    /// FAT16 and FAT32.
    Wide,
    /// FAT12 and FAT16.
    Fixed,
    /// Where 65,536 entries find room.
    Roomy,
    /// Volumes with the UNIX extension.
    Unix,
    /// The same, which is to be reset.
    Reset,
    /// Volumes with it in the paper's layout.
    Paper,
    /// The same, which is to be reset.
    PaperReset,
}

impl On {
    /// Returns the kinds of volumes, and the options of their checks.
    pub(crate) fn kinds(self) -> (&'static [&'static str], &'static str) {
        match self {
            Self::All => (&KINDS, ""),
            Self::Fat32 => (&KINDS[2..], ""),
            Self::Wide => (&KINDS[1..], ""),
            Self::Fixed => (&KINDS[..2], ""),
            Self::Roomy => (&KINDS[1..2], ""),
            Self::Unix => (&UNIX, ""),
            Self::Reset => (&UNIX, "unix=reset"),
            Self::Paper => (&PAPER, "unix=dosfs"),
            Self::PaperReset => (&PAPER, "unix=dosfs-reset"),
        }
    }
}

/// Whether `-p` mends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preen {
    Mends,
    Refuses,
}

/// A kind of damage.
pub(crate) struct Damage {
    pub(crate) name: &'static str,
    pub(crate) on: On,
    /// A finding that a check must give.
    pub(crate) code: &'static str,
    pub(crate) preen: Preen,
    pub(crate) harm: fn(&mut Image),
}

macro_rules! damages {
    ($($on:ident $name:ident $code:literal $preen:ident $harm:expr;)*) => {
        /// All of them.
        pub(crate) const ALL: &[Damage] = &[$(Damage {
            name: stringify!($name),
            on: On::$on,
            code: $code,
            preen: Preen::$preen,
            harm: $harm,
        }),*];
    };
}

damages! {
    // Boot sector, marks, label, FSInfo.
    Fat32 boot_sector_lost "boot-sector" Refuses |i| i.bytes[..512].fill(0);
    Fat32 boot_signature_lost "boot-sector" Refuses |i| i.bytes[510] = 0;
    Fat32 boot_sector_lies_about_reserved_sectors "boot-sector" Refuses |i| i.bytes[14] += 1;
    Fat32 boot_copy_differs "boot-backup" Refuses |i| i.bytes[6 * 512 + 36] ^= 3;
    All media_byte_wrong "boot-media" Refuses |i| i.bytes[21] = 0x11;
    All boot_dirty "dirty" Mends |i| { let t = i.tail(); i.bytes[t + 1] |= 1 };
    All boot_error "error-mark" Refuses |i| { let t = i.tail(); i.bytes[t + 1] |= 2 };
    Wide fat_dirty "dirty" Mends |i| { let v = i.end() & !mark(i, 0); i.set_fat(1, v) };
    Wide fat_error "error-mark" Refuses |i| { let v = i.end() & !mark(i, 1); i.set_fat(1, v) };
    All boot_label_differs "label" Mends |i| { let t = i.tail(); i.bytes[t + 7] = b'Q' };
    Fat32 boot_copy_has_another_label "label" Mends |i| i.bytes[6 * 512 + 71] = b'Q';
    Fat32 fsinfo_signature "fsinfo" Refuses |i| i.bytes[512] = 0;
    Fat32 fsinfo_trail "fsinfo" Refuses |i| i.bytes[512 + 511] = 0;
    Fat32 fsinfo_free_wrong "free-count" Mends |i| i.bytes[512 + 488] ^= 5;
    Fat32 fsinfo_free_unknown "free-count" Mends |i| i.bytes[512 + 488..512 + 492].fill(0xff);
    Fat32 fsinfo_next_wrong "next-free" Mends |i| i.bytes[512 + 492..512 + 496].fill(0x7f);
    // The FATs.
    All second_fat_behind "fats-differ" Mends |i| { let n = i.free(); i.set_fat_copy(1, n, i.end()) };
    All second_fat_zeroed "fats-differ" Mends |i| zero_fat(i, 1);
    All first_fat_zeroed "fat-choice" Refuses |i| zero_fat(i, 0);
    All first_fat_garbage "fat-choice" Refuses |i| {
        let (from, len) = (i.reserved, i.fat_len.min(512));
        (from..from + len).for_each(|at| i.bytes[at] = (at * 7 + 3) as u8);
    };
    All fat_head_wrong "fat-head" Refuses |i| i.set_fat(0, 5);
    All fat_second_entry_wrong "fat-head" Refuses |i| i.set_fat(1, 0);
    // Chains.
    All chain_to_reserved_value "chain-link" Refuses |i| { let c = chain(i, "ONEBIN"); i.set_fat(c[0], 1) };
    All chain_out_of_range "chain-link" Refuses |i| {
        let c = chain(i, "ONEBIN");
        let n = i.clusters + 10;
        i.set_fat(c[1], n);
    };
    All chain_to_free_cluster "chain-link" Refuses |i| {
        let (c, n) = (chain(i, "ONEBIN"), i.free());
        i.set_fat(c[1], n);
    };
    All chain_to_bad_cluster "chain-link" Refuses |i| {
        let (c, n) = (chain(i, "ONEBIN"), i.free());
        i.set_fat(n, i.end() - 8);
        i.set_fat(c[1], n);
    };
    All chain_loops "chain-loop" Refuses |i| { let c = chain(i, "ONEBIN"); i.set_fat(c[2], c[0]) };
    All chain_loops_early "chain-loop" Refuses |i| { let c = chain(i, "DIR1/SUB/DEEPBIN"); i.set_fat(c[2], c[2]) };
    All chains_merge "cross-link" Refuses |i| {
        let (a, b) = (chain(i, "ONEBIN"), chain(i, "TWOBIN"));
        i.set_fat(a[0], b[1]);
    };
    All chains_share_the_start "cross-link" Refuses |i| {
        let (a, b) = (i.find("ONEBIN").at, i.find("TWOBIN").at);
        let start = i.start(b);
        i.set_start(a, start);
    };
    All three_chains_merge "cross-link" Refuses |i| {
        let (a, b, c) = (chain(i, "ONEBIN"), chain(i, "TWOBIN"), chain(i, "DIR1/SUB/DEEPBIN"));
        i.set_fat(a[0], b[1]);
        i.set_fat(c[2], b[2]);
    };
    All file_leads_into_directory "cross-link" Refuses |i| {
        let (a, at) = (chain(i, "ONEBIN"), i.find("DIR1").at);
        let dir = i.start(at);
        i.set_fat(a[1], dir);
    };
    All directory_leads_into_file "cross-link" Refuses |i| {
        let (m, b) = (chain(i, "MANY"), chain(i, "TWOBIN"));
        i.set_fat(m[0], b[1]);
    };
    All directory_leads_into_garbage "dir-garbage" Refuses |i| {
        let (m, n) = (chain(i, "MANY"), i.free());
        let at = i.cluster_at(n);
        i.bytes[at..at + i.cluster].fill(0x9d);
        i.set_fat(m[2], n);
        i.set_fat(n, i.end());
    };
    All lost_chain "lost-chain" Mends |i| {
        let (a, b) = (i.free_n(0), i.free_n(1));
        i.set_fat(b, a);
        i.set_fat(a, i.end());
    };
    All lost_ring "lost-chain" Mends |i| {
        let (a, b) = (i.free_n(0), i.free_n(1));
        i.set_fat(b, a);
        i.set_fat(a, b);
    };
    All lost_chain_into_a_file "lost-chain" Mends |i| {
        let (n, c) = (i.free(), chain(i, "ONEBIN"));
        i.set_fat(n, c[1]);
    };
    All lost_chains_merge "lost-chain" Mends |i| {
        let (a, b, c) = (i.free_n(0), i.free_n(1), i.free_n(2));
        i.set_fat(a, i.end());
        i.set_fat(b, a);
        i.set_fat(c, a);
    };
    All lost_directory "lost-dir" Mends |i| { let at = i.find("DIR1").at; i.bytes[at] = 0xe5 };
    All lost_part_of_a_directory "lost-dir" Mends |i| { let m = chain(i, "MANY"); i.set_fat(m[2], i.end()) };
    // Sizes.
    All size_beyond_the_chain "size-long" Refuses |i| { let at = i.find("ONEBIN").at; let s = i.size(at); i.set_size(at, s * 3) };
    All size_before_the_chain_ends "size-short" Mends |i| { let at = i.find("TWOBIN").at; i.set_size(at, 5) };
    All size_zero_with_a_chain "size-zero" Mends |i| { let at = i.find("TWOBIN").at; i.set_size(at, 0) };
    All size_without_a_chain "no-chain" Refuses |i| { let at = i.find("EMPTY").at; i.set_size(at, 700) };
    // First clusters.
    All start_out_of_range "chain-start" Refuses |i| { let at = i.find("ONEBIN").at; let n = i.clusters + 2; i.set_start(at, n) };
    All start_one "chain-start" Refuses |i| { let at = i.find("ONEBIN").at; i.set_start(at, 1) };
    All start_free "chain-start" Refuses |i| { let (at, n) = (i.find("ONEBIN").at, i.free()); i.set_start(at, n) };
    All start_bad "chain-start" Refuses |i| {
        let (at, n) = (i.find("ONEBIN").at, i.free());
        i.set_fat(n, i.end() - 8);
        i.set_start(at, n);
    };
    // Directories.
    All dot_leads_elsewhere "dot" Refuses |i| { let d = dir(i, "DIR1/SUB"); i.set_start(d[0], 2) };
    All dot_is_a_file "dot" Refuses |i| { let d = dir(i, "DIR1/SUB"); i.bytes[d[0]..d[0] + 8].copy_from_slice(b"QQQQQQQQ") };
    All dots_come_last "dot" Refuses |i| dots_last(i, "DIR1");
    All dots_among_long_names "dot" Refuses |i| dots_last(i, "MANY");
    All dot_missing "dot" Refuses |i| { let d = dir(i, "DIR1/SUB"); i.bytes[d[0]] = 0xe5 };
    All dot_dot_leads_elsewhere "dot-dot" Mends |i| { let d = dir(i, "DIR1/SUB"); i.set_start(d[1], 3) };
    All dot_dot_overwritten "dot" Refuses |i| {
        let (d, at) = (dir(i, "DIR1"), i.find("DIR2/X").at);
        let raw: Vec<u8> = i.bytes[at..at + 32].to_vec();
        i.bytes[d[1]..d[1] + 32].copy_from_slice(&raw);
        i.bytes[at] = 0xe5;
    };
    All directory_in_itself "dir-twice" Refuses |i| {
        let (d, at) = (dir(i, "DIR1/SUB"), i.find("DIR1").at);
        let start = i.start(at);
        add(i, d[2], b"LOOP       ", 0x10, start);
    };
    All directory_twice "dir-twice" Refuses |i| {
        let at = i.find("DIR1/SUB").at;
        let (start, slot) = (i.start(at), i.end_slot(0));
        add(i, slot, b"AGAIN      ", 0x10, start);
    };
    All directory_without_a_chain "dir-no-chain" Refuses |i| { let at = i.find("DIR1").at; i.set_start(at, 0) };
    All directory_at_a_free_cluster "dir-no-chain" Refuses |i| { let (at, n) = (i.find("DIR1").at, i.free()); i.set_start(at, n) };
    All file_marked_as_directory "dir-not-dir" Refuses |i| { let at = i.find("TWOBIN").at; i.bytes[at + 11] = 0x10 };
    All directory_with_a_size "dir-size" Refuses |i| { let at = i.find("DIR1").at; i.set_size(at, 512) };
    All directory_marked_as_file "no-chain" Refuses |i| {
        // Its size is 0 then, and what it held is saved as a lost directory.
        let at = i.find("EMPTY").at;
        i.set_size(at, 1);
    };
    All directory_marked_as_empty_file "lost-dir" Mends |i| { let at = i.find("DIR1").at; i.bytes[at + 11] = 0x20 };
    All end_mark_in_the_middle "after-end" Refuses |i| { let at = i.find("MANY/NUMBER~4").at; i.bytes[at + 32] = 0 };
    All entry_after_the_end "after-end" Refuses |i| {
        let d = dir(i, "DIR2");
        i.bytes[d[7]..d[7] + 32].fill(0x9d);
    };
    All sector_before_was_not_written "after-end-torn" Mends |i| {
        let (at, from) = (i.find("DIR2/X").at, dir(i, "DIR2"));
        let raw: Vec<u8> = i.bytes[at..at + 32].to_vec();
        let d = grown(i, "DIR2", from);
        i.bytes[d[2]..d[2] + 32].fill(0);
        i.bytes[d[16]..d[16] + 32].copy_from_slice(&raw);
    };
    All sector_before_still_has_the_name "after-end-torn" Mends |i| {
        // What was renamed, and made anew under its old name.
        let (at, from) = (i.find("DIR2/X").at, dir(i, "DIR2"));
        let raw: Vec<u8> = i.bytes[at..at + 32].to_vec();
        let d = grown(i, "DIR2", from);
        i.bytes[d[16]] = 0xe5;
        for slot in [17, 18] {
            i.bytes[d[slot]..d[slot] + 32].copy_from_slice(&raw);
            i.set_start(d[slot], 0);
            i.set_size(d[slot], 0);
        }
        i.bytes[d[18]] = b'Q';
    };
    Fixed root_sector_of_garbage "dir-garbage" Refuses |i| {
        let d = i.slots(0);
        let end = d.iter().position(|&at| i.bytes[at] == 0).unwrap();
        d[end..16].iter().for_each(|&at| i.bytes[at] = 0xe5);
        i.bytes[d[16]..d[31] + 32].fill(0x9d);
    };
    // Long names.
    All long_name_loses_its_entry "long-orphan" Mends |i| { let at = i.find("AFILEW~1TEX").at; i.bytes[at] = 0xe5 };
    All long_name_checksum "long-orphan" Mends |i| { let p = i.find("AFILEW~1TEX").parts; i.bytes[p[0] + 13] ^= 1 };
    All long_name_order "long-orphan" Mends |i| { let p = i.find("AFILEW~1TEX").parts; i.bytes[p[1]] = 9 };
    All long_name_first_part_gone "long-orphan" Mends |i| { let p = i.find("AFILEW~1TEX").parts; i.bytes[p[0]] = 0xe5 };
    All long_name_type "long-field" Refuses |i| { let p = i.find("AFILEW~1TEX").parts; i.bytes[p[0] + 12] = 1 };
    All long_name_cluster "long-field" Refuses |i| { let p = i.find("AFILEW~1TEX").parts; i.bytes[p[0] + 26] = 1 };
    All long_name_with_a_slash "long-name" Refuses |i| { let p = i.find("AFILEW~1TEX").parts; i.bytes[p[1] + 3] = b'/' };
    All long_name_twice "duplicate-name" Refuses |i| {
        let (a, b) = (i.find("MANY/NUMBER~1").parts, i.find("MANY/NUMBER~2").parts);
        for (a, b) in a.iter().zip(&b) {
            let sum = i.bytes[b + 13];
            let raw: Vec<u8> = i.bytes[*a..a + 32].to_vec();
            i.bytes[*b..b + 32].copy_from_slice(&raw);
            i.bytes[b + 13] = sum;
        }
    };
    // Short names.
    All short_name_twice "duplicate-name" Refuses |i| {
        let at = i.find("ONEBIN").at;
        i.bytes[at..at + 11].copy_from_slice(b"TWO     BIN");
    };
    All short_name_is_a_long_one "duplicate-name" Refuses |i| {
        let d = dir(i, "MANY");
        let at = i.find("DIR1/INNERTXT").at;
        i.bytes[at..at + 11].copy_from_slice(b"SUB        ");
        assert!(d.len() > 2);
    };
    All short_name_with_a_star "short-name" Refuses |i| { let at = i.find("ONEBIN").at; i.bytes[at + 1] = b'*' };
    All short_name_in_lower_case "short-name" Refuses |i| { let at = i.find("ONEBIN").at; i.bytes[at] = b'o' };
    All short_name_begins_with_a_space "short-name" Refuses |i| { let at = i.find("ONEBIN").at; i.bytes[at] = b' ' };
    All reserved_case_bit "nt-bits" Refuses |i| { let at = i.find("ONEBIN").at; i.bytes[at + 12] |= 0x20 };
    // Labels.
    All label_in_a_directory "label-place" Refuses |i| { let d = dir(i, "DIR2"); add(i, d[3], b"WRONG      ", 8, 0) };
    All second_label "label-place" Refuses |i| { let s = i.end_slot(0); add(i, s, b"SECOND     ", 8, 0) };
    All label_with_a_cluster "label-data" Refuses |i| { let at = i.find("LABEL").at; i.set_start(at, 2) };
    All label_with_a_colon "label-name" Refuses |i| { let at = i.find("LABEL").at; i.bytes[at + 1] = b':' };
    All file_marked_as_label "volume-id-file" Refuses |i| { let at = i.find("ONEBIN").at; i.bytes[at + 11] |= 8 };
    Fat32 root_is_free "root-chain" Refuses |i| { let n = i.root_cluster; i.set_fat(n, 0) };
    Fat32 root_leads_nowhere "root-chain" Refuses |i| { let n = *i.chain(i.root_cluster).last().unwrap(); i.set_fat(n, 1) };
    Roomy directory_too_long "dir-too-long" Refuses |i| {
        let chain: Vec<u32> = i.free_many(65_536 * 32 / i.cluster + 3);
        let at = i.find("DIR2").at;
        let last = *i.chain(i.start(at)).last().unwrap();
        i.set_fat(last, chain[0]);
        for pair in chain.windows(2) {
            i.set_fat(pair[0], pair[1]);
        }
        i.set_fat(*chain.last().unwrap(), i.end());
        for &n in &chain {
            let at = i.cluster_at(n);
            for slot in 0..i.cluster / 32 {
                i.bytes[at + slot * 32] = 0xe5;
            }
        }
    };
    // The UNIX extension.
    Unix owner_table_head "owner-table" Refuses |i| { let at = table(i); i.bytes[at] = b'X' };
    Unix owner_table_version "owner-table" Refuses |i| { let at = table(i); i.bytes[at + 8] = 9 };
    Unix owner_table_cut_short "owner-table" Refuses |i| { let at = i.find("VOLARYOWN").at; i.set_size(at, 8) };
    Unix owner_table_without_a_chain "owner-table" Refuses |i| {
        let at = i.find("VOLARYOWN").at;
        i.set_start(at, 0);
        i.set_size(at, 0);
    };
    Unix owner_table_at_a_free_cluster "chain-start" Refuses |i| {
        let (at, n) = (i.find("VOLARYOWN").at, i.free());
        i.set_start(at, n);
    };
    Unix owner_table_shared "cross-link" Refuses |i| {
        let (at, one) = (i.find("VOLARYOWN").at, i.find("ONEBIN").at);
        let start = i.start(at);
        i.set_start(one, start);
    };
    Reset extension_reset "unix-reset" Refuses |_| {};
    Reset extension_reset_without_a_table "unix-reset" Refuses |i| { let at = i.find("VOLARYOWN").at; i.bytes[at] = 0xe5 };
    // The paper's layout.
    Paper paper_rest_of_a_name_lost "label-data" Refuses |i| {
        let at = i.find("Afilewith").at;
        i.bytes[at + 11] &= 0x7f;
    };
    Paper paper_names_twice "duplicate-name" Refuses |i| {
        let (a, b) = (i.find("ONEBIN").at, i.find("TWOBIN").at);
        i.bytes.copy_within(a..a + 11, b);
    };
    Paper paper_lost_chain "lost-chain" Mends |i| { let n = i.free(); i.set_fat(n, i.end()) };
    Paper paper_lost_directory "lost-dir" Mends |i| { let at = i.find("DIR1").at; i.bytes[at] = 0xe5 };
    Paper paper_chains_merge "cross-link" Refuses |i| {
        let (a, b) = (chain(i, "ONEBIN"), chain(i, "TWOBIN"));
        i.set_fat(a[0], b[1]);
    };
    Paper paper_directory_in_garbage "dir-garbage" Refuses |i| {
        let (m, n) = (chain(i, "MANY"), i.free());
        let at = i.cluster_at(n);
        i.bytes[at..at + i.cluster].fill(0x95);
        i.set_fat(m[0], n);
        i.set_fat(n, i.end());
    };
    PaperReset paper_extension_reset "unix-reset" Refuses |_| {};
    // A crash of a rename.
    All rename_cut_short "rename-twin" Mends |i| twin(i, false);
    All rename_that_replaces_cut_short "rename-twin" Mends |i| twin(i, true);
}

/// Returns the bit of the FAT's second entry: 0 for "clean", 1 for "no error".
fn mark(i: &Image, which: u32) -> u32 {
    let top = if i.bits == 16 { 0x8000 } else { 0x0800_0000 };
    top >> which
}

/// Returns where the table of owners lies.
fn table(i: &Image) -> usize {
    i.cluster_at(i.start(i.find("VOLARYOWN").at))
}

fn zero_fat(i: &mut Image, copy: usize) {
    let from = i.reserved + copy * i.fat_len;
    i.bytes[from..from + 512].fill(0);
}

fn chain(i: &Image, path: &str) -> Vec<u32> {
    i.chain(i.start(i.find(path).at))
}

/// Returns the slots of a directory.
fn dir(i: &Image, path: &str) -> Vec<usize> {
    i.slots(i.start(i.find(path).at))
}

/// Returns the slots of a directory that has one more cluster now, if it needs one for
/// a second sector.
fn grown(i: &mut Image, path: &str, slots: Vec<usize>) -> Vec<usize> {
    if slots.len() > 16 {
        return slots;
    }
    let (first, new) = (i.start(i.find(path).at), i.free());
    i.set_fat(first, new);
    i.set_fat(new, i.end());
    let at = i.cluster_at(new);
    i.bytes[at..at + i.cluster].fill(0);
    dir(i, path)
}

fn add(i: &mut Image, slot: usize, name: &[u8; 11], attr: u8, start: u32) {
    i.bytes[slot..slot + 32].fill(0);
    i.bytes[slot..slot + 11].copy_from_slice(name);
    i.bytes[slot + 11] = attr;
    i.set_start(slot, start);
}

fn twin(i: &mut Image, replace: bool) {
    let from = i.find("ONEBIN").at;
    let mut raw: Vec<u8> = i.bytes[from..from + 32].to_vec();
    let to = if replace {
        i.find("DIR2/X").at
    } else {
        dir(i, "DIR2")[3]
    };
    raw[..11].copy_from_slice(if replace {
        b"X          "
    } else {
        b"MOVED      "
    });
    i.bytes[to..to + 32].copy_from_slice(&raw);
}

/// Moves `.` and `..` behind the entries after them, with what these have as long names.
fn dots_last(i: &mut Image, path: &str) {
    let slots = dir(i, path);
    let live = slots.iter().take(14).take_while(|&&at| i.bytes[at] != 0);
    let mut end = live.count();
    // Not between the parts of a long name and their entry.
    while i.bytes[slots[end - 1] + 11] == 0x0f {
        end -= 1;
    }
    let all: Vec<u8> = slots[..end]
        .iter()
        .flat_map(|&at| i.bytes[at..at + 32].to_vec())
        .collect();
    let turned = [&all[64..], &all[..64]].concat();
    for (at, raw) in slots.iter().zip(turned.chunks(32)) {
        i.bytes[*at..*at + 32].copy_from_slice(raw);
    }
}
