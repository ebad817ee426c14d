//! Figures 2–4 as tables.

use super::cost::{
    FAT16_ENTRY, FFS_FIXED_60MB, FFS_FIXED_FLOPPY, Ffs, dosfs_dir, dosfs_metadata, ffs_dir,
};
use anyhow::Result;
use std::io::Write;

/// Fragment and cluster of the figures, in bytes.
const UNIT: u64 = 512;
/// Files in a directory in Figures 2 and 3.
const PER_DIR: u64 = 20;
/// Bytes in a name.
const NAME_LEN: u64 = 12;

/// FFS as in the figures, on 60 MB.
fn ffs(files: u64) -> Ffs {
    Ffs {
        fragment: UNIT,
        files_in_dir: PER_DIR,
        name_len: NAME_LEN,
        files,
        fixed: FFS_FIXED_60MB,
    }
}

/// What FFS pays more than DosFs for each file, in bytes.
fn ffs_over_dosfs(len: u64, files: u64) -> f64 {
    ffs(files).metadata(len) - dosfs_metadata(len, UNIT, PER_DIR, FAT16_ENTRY)
}

/// Prints the three figures as tables, each with what the paper says of it.
///
/// # Errors
/// Those of writing.
pub fn figures(out: &mut dyn Write) -> Result<()> {
    upfront(out)?;
    figure2(out)?;
    figure3(out)?;
    figure4(out)
}

fn upfront(out: &mut dyn Write) -> Result<()> {
    writeln!(
        out,
        "Paid before the first file (the paper's figures for FFS; ours for the FAT, the paper's in brackets)\n"
    )?;
    let kb = |n: u64| n / 1024;
    let fat12 = (1440_u64 * 3).div_ceil(2);
    let fat16 = (60 << 20) / 2048 * 2;
    writeln!(
        out,
        "  floppy, 1 KB clusters   FFS {:>5} KB   one FAT {:>3} KB (2 KB)",
        kb(FFS_FIXED_FLOPPY),
        fat12.div_ceil(1024)
    )?;
    writeln!(
        out,
        "  60 MB, 2 KB clusters    FFS {:>5} KB   one FAT {:>3} KB (64 KB)\n",
        kb(FFS_FIXED_60MB),
        kb(fat16)
    )?;
    Ok(())
}

fn figure2(out: &mut dyn Write) -> Result<()> {
    let lens = [512, 4 << 10, 16 << 10, 64 << 10];
    let counts = [100, 500, 1000, 2000, 4000, 6000, 8000, 10_000];
    writeln!(
        out,
        "Figure 2: metadata of FFS over DosFs, bytes for each file, by the number of files"
    )?;
    writeln!(
        out,
        "(fragments and clusters of {UNIT} bytes, {PER_DIR} files in a directory, 60 MB)\n"
    )?;
    write!(out, "{:>8}", "files")?;
    for len in lens {
        write!(out, " {:>12}", format!("{len} bytes"))?;
    }
    writeln!(out)?;
    for files in counts {
        write!(out, "{files:>8}")?;
        for len in lens {
            // No more than the disk holds.
            if files * len <= 60 << 20 {
                write!(out, " {:>12.0}", ffs_over_dosfs(len, files))?;
            } else {
                write!(out, " {:>12}", "-")?;
            }
        }
        writeln!(out)?;
    }
    writeln!(
        out,
        "\nAs in the paper, what is fixed in FFS is shared by more files as they grow in number.\n"
    )?;
    Ok(())
}

fn figure3(out: &mut dyn Write) -> Result<()> {
    let lens = [
        1, 4, 16, 32, 48, 49, 64, 128, 512, 1024, 4096, 4144, 4145, 8192, 16_384,
    ];
    writeln!(
        out,
        "Figure 3: metadata for each file in bytes, by the size of the file (6,000 files, {PER_DIR} in a directory)\n"
    )?;
    writeln!(
        out,
        "{:>9} {:>9} {:>14} {:>14}",
        "KB", "FFS", "DosFs 512", "DosFs 4096"
    )?;
    for kb in lens {
        let len = kb << 10;
        let dosfs = |cluster| dosfs_metadata(len, cluster, PER_DIR, FAT16_ENTRY);
        writeln!(
            out,
            "{kb:>9} {:>9.0} {:>14.0} {:>14.0}",
            ffs(6000).metadata(len),
            dosfs(UNIT),
            dosfs(4096)
        )?;
    }
    writeln!(
        out,
        "\nThe ramps are FFS's indirect blocks. The paper puts the first at 64 KB; with 4.3BSD's twelve direct blocks of 4 KB it is\n\
         at 48. Its \"DosFs costs still grow at half the speed\" (2 bytes a cluster against 4 a block) is true of clusters of 4 KB,\n\
         the last column; with 512-byte clusters the FAT grows four times as fast as FFS's lists.\n"
    )?;
    Ok(())
}

fn figure4(out: &mut dyn Write) -> Result<()> {
    writeln!(
        out,
        "Figure 4: a file's share of its directory in bytes, by the files in it (names of {NAME_LEN})\n"
    )?;
    writeln!(
        out,
        "{:>8} {:>9} {:>9} {:>11}",
        "files", "FFS", "DosFs", "difference"
    )?;
    for files in [1, 2, 4, 8, 10, 16, 20, 25, 32, 50, 64, 100, 200, 500, 1000] {
        let (a, b) = (ffs_dir(files, UNIT, NAME_LEN), dosfs_dir(files, UNIT));
        writeln!(out, "{files:>8} {a:>9.1} {b:>9.1} {:>11.1}", b - a)?;
    }
    writeln!(
        out,
        "\nAs in the paper, FFS's directories are the smaller: 20 bytes an entry in the end, against 32."
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ffs_costs_more_for_small_files_whatever_their_number() {
        for files in [100, 1000, 10_000] {
            assert!(ffs_over_dosfs(4096, files) > 0.0);
        }
        assert!(ffs_over_dosfs(4096, 100) > ffs_over_dosfs(4096, 10_000));
    }

    #[test]
    fn what_is_printed_of_growth_is_true() {
        let ffs = |len| ffs(6000).metadata(len);
        let fat = |len, cluster| dosfs_metadata(len, cluster, PER_DIR, FAT16_ENTRY);
        let (from, to) = (5 << 20, 13 << 20);
        let lists = super::super::cost::indirect(to) - super::super::cost::indirect(from);
        assert_eq!((fat(to, 4096) - fat(from, 4096)).round() as u64, lists / 2);
        assert_eq!((fat(to, 512) - fat(from, 512)).round() as u64, lists * 4);
        assert!(ffs(49 << 10) - ffs(48 << 10) >= 4096.0);
    }

    #[test]
    fn the_figures_print() {
        let mut out = Vec::new();
        figures(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        for words in ["Figure 2", "Figure 3", "Figure 4", "difference"] {
            assert!(text.contains(words));
        }
    }
}
