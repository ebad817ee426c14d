//! The application benchmark: an archive is copied and unpacked, the tree
//! copied, looked through, compared, compiled, packed and removed.

use crate::served::Place;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// The sum of all phases.
pub(super) const TOTAL: &str = "total";
/// What `cc` is run on: all, and in a guest one in ten, for its processor is emulated.
const ALL: &str = "tree/*/*.c";
const FEWER: &str = "tree/*/file*0.c";
pub(super) const FEWER_NOTE: &str =
    "Of the 209 files 21 are compiled in the guest: those whose number ends in 0.";
/// The paper's tree: 209 files, about 4.5 KB each.
const FILES: usize = 209;
const DIRS: usize = 8;
const FUNCTIONS: usize = 40;

/// Returns an archive of a source tree like the paper's.
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

/// Returns the phases in turn, as lines of the shell; of `sources` objects are made.
fn lines(archive: &str, sources: &str) -> [(&'static str, String); 11] {
    let of = |phase, line: &str| (phase, line.to_owned());
    [
        ("copy", format!("cp {archive} tree.tar")),
        of("unpack", "tar xf tree.tar"),
        of("copy", "cp -r tree copy"),
        of("attributes", "du -s tree"),
        of("compare", "diff -r tree copy"),
        (
            "compile",
            format!("for f in {sources}; do cc -c -o ${{f%.c}}.o $f || exit 1; done"),
        ),
        of("attributes", "du -s tree"),
        // The objects are in one of them only.
        of("compare", "diff -r -x '*.o' tree copy"),
        of("pack", "tar cf built.tar tree"),
        of("pack", "tar rf tree.tar tree"),
        of("remove", "rm -r tree copy tree.tar built.tar"),
    ]
}

/// Runs it in `dir` and gives the seconds of each step. `goes_on` is asked before each.
///
/// # Errors
/// If a program fails, if two trees differ that should not, or what `goes_on` says.
pub(super) fn run(
    dir: &Path,
    archive: &Path,
    goes_on: &dyn Fn() -> Result<()>,
) -> Result<Vec<(String, f64)>> {
    let mut costs: Vec<(String, f64)> = Vec::new();
    for (phase, line) in lines(&archive.display().to_string(), ALL) {
        goes_on()?;
        let start = Instant::now();
        shell(dir, &line)?;
        costs.push((phase.to_owned(), start.elapsed().as_secs_f64()));
    }
    Ok(with_total(costs))
}

fn with_total(mut costs: Vec<(String, f64)>) -> Vec<(String, f64)> {
    let total = costs.iter().map(|(_, seconds)| seconds).sum();
    costs.push((TOTAL.to_owned(), total));
    costs
}

/// Lines of the guest's shell that put it into a script of bash at `path`, to be run in `dir`. That prints phases and
/// their seconds, as the clients do.
pub(super) fn script(dir: &Path, archive: &str, path: &str) -> String {
    let mut script = format!(
        "cat > {path} <<'END'\ncd {} || exit 1\ntotal=0\n\
         told() {{ printf '%s %d.%06d\\n' $1 $(($2 / 1000000)) $(($2 % 1000000)); }}\n",
        dir.display()
    );
    for (phase, line) in lines(archive, FEWER) {
        script += &format!(
            "begun=${{EPOCHREALTIME/./}}\n{{ {line}; }} >/dev/null || exit 1\n\
             took=$((${{EPOCHREALTIME/./}} - begun)) total=$((total + took))\ntold {phase} $took\n"
        );
    }
    script + &format!("told {TOTAL} $total\nEND\n")
}

/// Returns a phase that comes several times becomes the sum of these.
pub(super) fn summed(costs: Vec<(String, f64)>) -> Vec<(String, f64)> {
    let mut sums: Vec<(String, f64)> = Vec::new();
    for (phase, seconds) in costs {
        match sums.iter_mut().find(|(name, _)| *name == phase) {
            Some((_, sum)) => *sum += seconds,
            None => sums.push((phase, seconds)),
        }
    }
    sums
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
    use crate::served::clients::parse;

    #[test]
    fn the_source_tree_is_of_the_papers_size() {
        let len = source(100).len();
        assert!((4_000..5_500).contains(&len), "{len}");
        let compiled = (0..FILES).filter(|number| number % 10 == 0).count();
        assert!(FEWER_NOTE.contains(&format!("{FILES} files {compiled} ")));
    }

    #[test]
    fn phases_are_sums_and_so_is_the_total() {
        let costs = [("copy", 1.0), ("compare", 2.0), ("copy", 0.5)];
        let costs = costs.map(|(phase, seconds)| (phase.to_owned(), seconds));
        let sums = summed(with_total(costs.to_vec()));
        let sums: Vec<(&str, f64)> = sums.iter().map(|(p, s)| (p.as_str(), *s)).collect();
        assert_eq!(sums, [("copy", 1.5), ("compare", 2.0), (TOTAL, 3.5)]);
    }

    /// The guest's shell is one of its own, but its bash and what that starts are the host's.
    #[test]
    fn the_script_prints_what_clients_print() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("from/tree/d")).unwrap();
        fs::create_dir(at("to")).unwrap();
        fs::write(at("from/tree/d/file10.c"), "int x;\n").unwrap();
        shell(&at("from"), "tar cf tree.tar tree").unwrap();
        let [archive, path] =
            ["from/tree.tar", "build.sh"].map(|name| at(name).display().to_string());
        shell(dir.path(), &script(&at("to"), &archive, &path)).unwrap();
        let run = Command::new("bash").arg(&path).output().unwrap();
        let printed = String::from_utf8_lossy(&run.stdout);
        let costs = parse(&printed).unwrap();
        let said = String::from_utf8_lossy(&run.stderr);
        assert_eq!(costs.len(), 12, "{printed}{said}");
        assert_eq!(costs[11].0, TOTAL);
        let steps: f64 = costs.iter().take(11).map(|(_, seconds)| seconds).sum();
        assert!((steps - costs[11].1).abs() < 1e-4, "{printed}");
    }
}
