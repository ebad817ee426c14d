//! The `fatfs` crate as a rival.

use anyhow::Result;
use fscommon::BufStream;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

type Dir<'a> = fatfs::Dir<'a, BufStream<File>>;

/// Copies the tree `from` into the root of the volume in `image`.
pub(crate) fn copy_in(from: &Path, image: &Path) -> Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(image)?;
    let volume = fatfs::FileSystem::new(BufStream::new(file), fatfs::FsOptions::new())?;
    let name = from.file_name().unwrap_or_default().to_string_lossy();
    copy_dir(from, &volume.root_dir().create_dir(&name)?)?;
    volume.unmount()?;
    Ok(())
}

fn copy_dir(from: &Path, to: &Dir<'_>) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if entry.file_type()?.is_dir() {
            copy_dir(&entry.path(), &to.create_dir(&name)?)?;
        } else {
            to.create_file(&name)?.write_all(&fs::read(entry.path())?)?;
        }
    }
    Ok(())
}
