//! The tree that is copied, and whether a copy is the same.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Returns whether all is to be done, and not only what every run can afford.
pub(crate) fn all() -> bool {
    std::env::var_os("VOLARY_SUITES").is_some_and(|mode| mode == "all")
}

/// Returns how many directories the tree has; each has [`FILES`] files.
pub(crate) fn dirs(few: u32) -> u32 {
    if all() { 100 } else { few }
}

pub(crate) const FILES: u32 = 100;

/// Makes the tree: `dir N/file N.bin` of no bytes to 12 KiB, and one large file.
pub(crate) fn make(root: &Path, dirs: u32) {
    fs::create_dir(root).unwrap();
    for d in 0..dirs {
        let dir = root.join(format!("dir {d}"));
        fs::create_dir(&dir).unwrap();
        for f in 0..FILES {
            let len = (d * FILES + f) * 37 % 12_289;
            fs::write(dir.join(format!("file {f}.bin")), noise(d * FILES + f, len)).unwrap();
        }
    }
    fs::write(root.join("large"), noise(u32::MAX, 200_003 * dirs.max(3))).unwrap();
}

/// Returns bytes that differ from file to file.
fn noise(seed: u32, len: u32) -> Vec<u8> {
    let mut state = seed | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[0]
    };
    (0..len).map(next).collect()
}

/// Fails unless `diff` finds the two alike: names, kinds and bytes.
pub(crate) fn same(a: &Path, b: &Path, what: &str) {
    let mut command = Command::new("diff");
    let output = command.args(["-rq", "--no-dereference"]).arg(a).arg(b);
    let output = output.output().unwrap();
    let words = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{what}:\n{words}");
}
