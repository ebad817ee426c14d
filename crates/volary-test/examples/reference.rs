//! Writes the reference tree into a new directory, or as a tar: something to pack in the format of
//! a driver, and to hold it against with `volary conform --against`.

use std::error::Error;
use std::fs;
use std::path::PathBuf;
use volary_test::{Lack, reference};

fn main() -> Result<(), Box<dyn Error>> {
    let to = std::env::args_os().nth(1).map(PathBuf::from);
    let to = to.ok_or("usage: reference DIR | reference FILE.tar")?;
    let tree = reference::tree();
    if to.extension().is_some_and(|end| end == "tar") {
        tree.write_tar(fs::File::create_new(&to)?)?;
        return Ok(());
    }
    fs::create_dir(&to)?;
    // Only root gives files away.
    let tree = match rustix::process::geteuid().is_root() {
        true => tree,
        false => tree.without(Lack::Owners),
    };
    tree.write_dir(&to)?;
    Ok(())
}
