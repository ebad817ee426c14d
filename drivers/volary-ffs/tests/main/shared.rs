//! The images that stand beside the project, where it is at home.

use std::path::{Path, PathBuf};
use volary_testkit::oracle::{Tool, have};

pub(crate) const ZSTD: Tool = Tool {
    program: "zstd",
    package: "zstd",
};

fn file(name: &str) -> Option<PathBuf> {
    let given = std::env::var_os("VOLARY_SHARED").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let file = given.unwrap_or(beside).join("images").join(name);
    if file.is_file() {
        return Some(file);
    }
    println!("skipped: no {}", file.display());
    None
}

/// Returns an image, unpacked; `None`, with a line that says so, where it is not.
pub(crate) fn image(name: &str) -> Option<Vec<u8>> {
    let packed = file(&format!("{name}.img.zst"))?;
    if !have(&[ZSTD]) {
        return None;
    }
    let out = ZSTD.command().args(["-d", "-q", "-c"]).arg(packed).output();
    let out = out.expect("zstd");
    assert!(out.status.success(), "{out:?}");
    Some(out.stdout)
}

/// Returns what its list says that it holds.
pub(crate) fn list(name: &str) -> String {
    let file = file(&format!("{name}.txt")).expect("an image has a list");
    std::fs::read_to_string(file).expect("a list")
}
