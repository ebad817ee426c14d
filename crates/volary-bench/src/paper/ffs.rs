//! Disk utilisation in McKusick, Joy, Leffler and Fabry, "A Fast File System for UNIX" (1984),
//! section 2.2: Table 1, the space that block sizes waste, of a tree that is there today.

use anyhow::{Context, Result};
use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How files are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One after the other.
    Packed,
    /// Each from a border of so many bytes on.
    Aligned(u64),
    /// The file system of the time before, with blocks of so many bytes.
    Old(u64),
    /// FFS with blocks and fragments of so many bytes.
    Fast(u64, u64),
}

/// A line of the table: what it is called, and how much the paper says is wasted, in percent of
/// the data. Of its own organisation it says in words that fragments of 1024 and 512 bytes waste
/// "about the same" as blocks of that size did.
pub const TABLE: [(Layout, Option<f64>); 11] = [
    (Layout::Packed, Some(0.0)),
    (Layout::Aligned(512), Some(4.2)),
    (Layout::Old(512), Some(6.9)),
    (Layout::Old(1024), Some(11.8)),
    (Layout::Old(2048), Some(22.4)),
    (Layout::Old(4096), Some(45.6)),
    (Layout::Fast(4096, 512), Some(6.9)),
    (Layout::Fast(4096, 1024), Some(11.8)),
    (Layout::Fast(8192, 1024), None),
    (Layout::Fast(16_384, 2048), None),
    (Layout::Fast(32_768, 4096), None),
];

impl Layout {
    fn words(self) -> String {
        match self {
            Self::Packed => "data only, no separation between files".into(),
            Self::Aligned(unit) => format!("data only, each file starts on {unit} byte boundary"),
            Self::Old(block) => format!("data + inodes, {block} byte block UNIX file system"),
            Self::Fast(block, fragment) => format!("data + inodes, FFS {block}/{fragment}"),
        }
    }

    /// Bytes that a file of `len` bytes takes.
    pub fn used(self, len: u64) -> u64 {
        let up = |unit: u64| len.div_ceil(unit) * unit;
        match self {
            Self::Packed => len,
            Self::Aligned(unit) => up(unit),
            Self::Old(block) => up(block) + indirect(len, block, 10) * block + 64,
            Self::Fast(block, fragment) => {
                // Only a file without indirect blocks ends in fragments.
                let unit = if len > 12 * block { block } else { fragment };
                up(unit) + indirect(len, block, 12) * block + 128
            }
        }
    }

    /// What files of these lengths waste, in percent of their data.
    pub fn waste(self, files: &[u64]) -> f64 {
        let data: u64 = files.iter().sum();
        let used: u64 = files.iter().map(|&len| self.used(len)).sum();
        (used - data) as f64 * 100.0 / data.max(1) as f64
    }
}

/// Indirect blocks of a file, with `direct` pointers in the inode and others of four bytes.
fn indirect(len: u64, block: u64, direct: u64) -> u64 {
    let each = block / 4;
    let mut rest = len.div_ceil(block).saturating_sub(direct);
    let (mut all, mut span) = (0, each);
    while rest > 0 {
        let here = rest.min(span);
        let mut level = here;
        let mut below = span;
        while below > 1 {
            level = level.div_ceil(each);
            all += level;
            below /= each;
        }
        rest -= here;
        span = span.saturating_mul(each);
    }
    all
}

/// Lengths of the files below a directory of the host; those with several names once. What cannot
/// be looked at is passed over.
///
/// # Errors
/// If the directory itself cannot be listed, or holds no bytes.
pub fn lengths(tree: &Path) -> Result<Vec<u64>> {
    let (mut files, mut known) = (Vec::new(), HashSet::new());
    let first = fs::read_dir(tree).with_context(|| tree.display().to_string())?;
    let mut todo = vec![first];
    while let Some(dir) = todo.pop() {
        for entry in dir.flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() {
                todo.extend(fs::read_dir(entry.path()));
            } else if meta.is_file() && known.insert((meta.dev(), meta.ino())) {
                files.push(meta.len());
            }
        }
    }
    let bytes: u64 = files.iter().sum();
    anyhow::ensure!(bytes > 0, "{} holds no files", tree.display());
    Ok(files)
}

/// Prints the table of a tree, the paper's figures in brackets.
///
/// # Errors
/// As [`lengths`]; of writing.
pub fn table1(tree: &Path, out: &mut dyn Write) -> Result<()> {
    let files = lengths(tree)?;
    let data: u64 = files.iter().sum();
    let mib = |n: u64| n as f64 / f64::from(1 << 20);
    writeln!(
        out,
        "Table 1: {} files of {} bytes on the average in {} (the paper's figures in brackets)\n",
        files.len(),
        data / files.len() as u64,
        tree.display(),
    )?;
    writeln!(out, "{:>12} {:>14}  organization", "space used", "% waste")?;
    for (layout, paper) in TABLE {
        let used: u64 = files.iter().map(|&len| layout.used(len)).sum();
        let paper = paper.map_or(String::new(), |paper| format!(" ({paper:.1})"));
        let waste = format!("{:.1}{paper}", layout.waste(&files));
        let words = layout.words();
        writeln!(out, "{:>9.1} MB {waste:>14}  {words}", mib(used))?;
    }
    writeln!(
        out,
        "\nIndirect blocks count, inodes of 64 bytes and FFS's of 128; the free-space reserve does not, nor do directories."
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use volary::block::MemDevice;
    use volary::{Attach, Cancel, Create, Cred, Ctx, Make, Name, Options, SetAttr, Time};

    /// Lengths that are distributed as those of the paper's users seem to have been: log-logistic,
    /// half of the files below 1800 bytes.
    fn files(count: u32) -> Vec<u64> {
        let quantile = |i: u32| (f64::from(i) + 0.5) / f64::from(count);
        let len = |p: f64| 1800.0 * (p / (1.0 - p)).powf(0.78);
        (0..count).map(|i| len(quantile(i)) as u64).collect()
    }

    #[test]
    fn the_waste_comes_near_to_the_paper() {
        let files = files(4000);
        for (layout, paper) in TABLE {
            let ours = layout.waste(&files);
            if let Some(paper) = paper {
                assert!((ours - paper).abs() <= 1.6, "{layout:?}: {ours} ({paper})");
            }
        }
        // Large blocks cost no more than their fragments.
        let waste = |layout: Layout| layout.waste(&files);
        let (fast, old) = (Layout::Fast(4096, 512), Layout::Old(4096));
        assert!(waste(fast) * 5.0 < waste(old));
    }

    #[test]
    fn indirect_blocks_are_counted() {
        assert_eq!(indirect(12 * 4096, 4096, 12), 0);
        assert_eq!(indirect(12 * 4096 + 1, 4096, 12), 1);
        assert_eq!(indirect((12 + 1024) * 4096, 4096, 12), 1);
        assert_eq!(indirect((12 + 1024) * 4096 + 1, 4096, 12), 3);
        assert_eq!(indirect((12 + 1024 + 1025) * 4096, 4096, 12), 4);
    }

    /// What a volume of volary's says is used by files, without their inodes.
    fn used_on_a_volume(block: u64, fragment: u64, files: &[u64]) -> u64 {
        let dev = Arc::new(MemDevice::new(64 << 20));
        let sizes = format!("block={block},fragment={fragment},density=4096");
        let how = Make {
            options: Options::parse(&sizes),
            ..Make::default()
        };
        let format = volary::format_of("ffs1").expect("a format");
        format.make(dev.clone(), "ffs1", &how).expect("mkfs");
        let fs = format.attach(dev, &Attach::default()).expect("attach");
        let (cred, cancel) = (Cred::root(), Cancel::new());
        let cx = Ctx {
            cred: &cred,
            now: Time::from_secs(0),
            cancel: &cancel,
        };
        let root = fs.root();
        let name = |i: usize| format!("{i}");
        let create = |i: usize| {
            let text = name(i);
            let name = Name::new(text.as_bytes()).expect("a name");
            let set = SetAttr::default();
            fs.create(&cx, root, name, Create::New, &set)
                .expect("create")
                .1
        };
        let opens: Vec<_> = (0..files.len()).map(create).collect();
        let before = fs.statfs(&cx).expect("statfs").free;
        for (&open, &len) in opens.iter().zip(files) {
            let content = vec![1; len as usize];
            fs.write(&cx, open, Some(0), &content).expect("write");
        }
        before - fs.statfs(&cx).expect("statfs").free
    }

    #[test]
    fn real_volumes_use_what_is_computed() {
        let files = files(1200);
        for (block, fragment) in [(4096, 512), (4096, 1024), (8192, 1024)] {
            let layout = Layout::Fast(block, fragment);
            let computed: u64 = files.iter().map(|&len| layout.used(len) - 128).sum();
            assert_eq!(
                used_on_a_volume(block, fragment, &files),
                computed,
                "{layout:?}"
            );
        }
    }

    #[test]
    fn the_table_of_a_tree_prints() {
        let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut out = Vec::new();
        table1(&tree, &mut out).expect("a table");
        let text = String::from_utf8(out).expect("text");
        assert!(
            text.contains("(45.6)") && text.contains("FFS 4096/512"),
            "{text}"
        );
        let missing = table1(&tree.join("none"), &mut Vec::new());
        assert!(missing.is_err());
    }
}
