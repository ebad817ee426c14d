//! The application benchmark: an archive is copied and unpacked, the tree
//! copied, looked through, compared, compiled, packed and removed.

use crate::served::Place;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The paper's categories.
pub(super) const PHASES: [&str; 7] = [
    "copy",
    "unpack",
    "attributes",
    "compare",
    "compile",
    "pack",
    "remove",
];
/// The paper's tree: 209 files, about 4.5 KB each.
const FILES: usize = 209;
const DIRS: usize = 8;
const FUNCTIONS: usize = 40;

/// An archive of a source tree like the paper's.
///
/// # Errors
/// What the host says.
pub(super) fn archive(place: &Place) -> Result<PathBuf> {
    let tree = place.path("source/tree");
    for i in 0..FILES {
        let dir = tree.join(format!("part{}", i % DIRS));
        fs::create_dir_all(&dir)?;
        fs::write(dir.join(format!("file{i}.c")), source(i))?;
    }
    let archive = place.path("source/tree.tar");
    shell(&place.path("source"), "tar cf tree.tar tree")?;
    Ok(archive)
}

/// One file of the tree.
fn source(number: usize) -> String {
    let mut text = format!("/* Source file {number}. */\n");
    for f in 0..FUNCTIONS {
        text.push_str(&format!(
            "int part{number}_function{f}(int x)\n{{\n    /* {:040} */\n    return x * {f} + {number};\n}}\n",
            number * f
        ));
    }
    text
}

/// Runs it in `dir` and gives the seconds of each phase.
///
/// # Errors
/// If a program fails, or two trees differ that should not.
pub(super) fn run(dir: &Path, archive: &Path) -> Result<Vec<(String, f64)>> {
    let archive = archive.display();
    let mut costs: Vec<(String, f64)> = Vec::new();
    for (phase, line) in [
        ("copy", format!("cp {archive} tree.tar")),
        ("unpack", "tar xf tree.tar".to_owned()),
        ("copy", "cp -r tree copy".to_owned()),
        ("attributes", "du -s tree".to_owned()),
        ("compare", "diff -r tree copy".to_owned()),
        (
            "compile",
            "for f in tree/*/*.c; do cc -c -o ${f%.c}.o $f || exit 1; done".to_owned(),
        ),
        ("attributes", "du -s tree".to_owned()),
        // The objects are in one of them only.
        ("compare", "diff -r -x '*.o' tree copy".to_owned()),
        ("pack", "tar cf built.tar tree".to_owned()),
        ("pack", "tar rf tree.tar tree".to_owned()),
        ("remove", "rm -r tree copy tree.tar built.tar".to_owned()),
    ] {
        let start = Instant::now();
        shell(dir, &line)?;
        let seconds = start.elapsed().as_secs_f64();
        match costs.iter_mut().find(|(name, _)| name == phase) {
            Some((_, sum)) => *sum += seconds,
            None => costs.push((phase.to_owned(), seconds)),
        }
    }
    Ok(costs)
}

fn shell(dir: &Path, line: &str) -> Result<()> {
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(dir);
    let run = command
        .stdin(Stdio::null())
        .output()
        .context("cannot run sh")?;
    if !run.status.success() {
        bail!("{line}: {}", String::from_utf8_lossy(&run.stderr).trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_source_tree_is_of_the_papers_size() {
        let len = source(100).len();
        assert!((4_000..5_500).contains(&len), "{len}");
    }
}
