//! mtools: reads and writes FAT volumes without mounting them.

use super::{Tool, host, run};
use crate::tree::Tree;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Copies.
pub const MCOPY: Tool = Tool {
    program: "mcopy",
    package: "mtools",
};

/// Shows and sets DOS attributes.
pub const MATTRIB: Tool = Tool {
    program: "mattrib",
    package: "mtools",
};

/// Returns the others, by name.
fn tool(program: &'static str) -> Command {
    let package = "mtools";
    let mut command = Tool { program, package }.command();
    // What it does not know is for us to judge.
    command.env("MTOOLS_SKIP_CHECK", "1");
    command
}

/// Runs one of the programs on an image: `mmd`, `mdel`, `mren`, ...; places in
/// the image are `::/a/b`.
///
/// # Errors
/// What it printed.
pub fn on(program: &'static str, image: &Path, args: &[&str]) -> Result<Vec<u8>, String> {
    run(tool(program).arg("-i").arg(image).args(args))
}

/// Copies all that is in a directory of the host into the root, with times.
///
/// # Errors
/// What mcopy printed.
pub fn copy_in(image: &Path, from: &Path) -> Result<(), String> {
    let entries = std::fs::read_dir(from).map_err(|e| e.to_string())?;
    let mut paths: Vec<_> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.sort();
    let mut command = tool("mcopy");
    command.args(["-s", "-m", "-n", "-Q", "-i"]).arg(image);
    run(command.args(paths).arg("::/")).map(drop)
}

/// Returns all that the volume holds, as mcopy reads it.
///
/// # Errors
/// What mcopy printed.
pub fn tree(image: &Path) -> Result<Tree, String> {
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    if on("mdir", image, &["-b", "-a", "::/"])?.is_empty() {
        return Ok(Tree::default());
    }
    let mut command = tool("mcopy");
    command.args(["-s", "-m", "-n", "-i"]).arg(image);
    run(command.arg("::*").arg(dir.path()))?;
    host::tree(dir.path()).map_err(|e| e.to_string())
}

/// Returns the DOS attributes of all that the volume holds: path and letters, such as
/// `AR` or `H`.
///
/// # Errors
/// What mattrib printed.
pub fn attributes(image: &Path) -> Result<BTreeMap<String, String>, String> {
    let printed = on("mattrib", image, &["-/", "::*"])?;
    Ok(parse_attributes(&String::from_utf8_lossy(&printed)))
}

pub(super) fn parse_attributes(printed: &str) -> BTreeMap<String, String> {
    let lines = printed.lines().filter_map(|line| line.split_once("::/"));
    lines
        .map(|(letters, path)| {
            let letters = letters.chars().filter(|c| c.is_ascii_alphabetic());
            (path.to_string(), letters.collect())
        })
        .collect()
}
