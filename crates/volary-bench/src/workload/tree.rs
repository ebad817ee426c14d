//! Trees of files: made, copied, looked at, read and removed.

use super::{Files, by_unit, read_whole, write_new};
use anyhow::Result;

/// Bytes that programs read and write at a time.
const UNIT: u64 = 16 << 10;

/// Directories, each after the one that holds it, and files with their lengths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Paths of directories.
    pub dirs: Vec<String>,
    /// Paths and lengths of files.
    pub files: Vec<(String, u64)>,
}

impl Tree {
    /// Returns the bytes in all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, len)| len).sum()
    }
}

/// Returns a tree of directories `dir0`, `dir1`, … below `top`, and so many files, one directory after the other, of lengths with this sum that are
/// distributed exponentially. The same each time; names fit 8.3.
pub fn with_lengths(top: &str, dirs: usize, files: usize, bytes: u64) -> Tree {
    let dirs = dirs.max(1);
    let below = |dir: usize| format!("{top}/dir{dir}");
    // Quantiles by square roots alone are the same on all machines: the sum of four is near to what is wanted.
    let quantile = |i: usize| {
        let part = (i as f64 + 0.5) / files.max(1) as f64;
        part.sqrt() * part / (1.02 - part).sqrt() + 0.05
    };
    let sum: f64 = (0..files).map(quantile).sum();
    let mut tree = Tree {
        dirs: vec![top.to_owned()],
        files: Vec::new(),
    };
    tree.dirs.extend((0..dirs).map(below));
    for i in 0..files {
        // Small and large ones come mixed.
        let drawn = i * 61 % files.max(1);
        let len = (quantile(drawn) / sum * bytes as f64) as u64;
        tree.files
            .push((format!("{}/file{i}.x", below(i * dirs / files)), len.max(1)));
    }
    tree
}

/// Returns the path below another directory.
fn moved(path: &str, from: &str, to: &str) -> String {
    match path.strip_prefix(from) {
        Some(rest) => format!("{to}{rest}"),
        None => path.to_owned(),
    }
}

/// Makes the directories and files of a tree.
///
/// # Errors
/// Of the files.
pub fn make(files: &mut dyn Files, tree: &Tree) -> Result<()> {
    for dir in &tree.dirs {
        files.mkdir(dir)?;
    }
    for (path, len) in &tree.files {
        write_new(files, path, *len, UNIT)?;
    }
    Ok(())
}

/// Copies a tree from the directory `from` to `to`, `unit` bytes at a time, and computes `compute` microseconds for each file.
///
/// # Errors
/// Of the files.
pub fn copy(
    files: &mut dyn Files,
    tree: &Tree,
    from: &str,
    to: &str,
    unit: u64,
    compute: f64,
) -> Result<()> {
    for dir in &tree.dirs {
        files.mkdir(&moved(dir, from, to))?;
    }
    for (path, len) in &tree.files {
        let new = moved(path, from, to);
        files.compute(compute)?;
        files.open(path)?;
        files.create(&new)?;
        by_unit(*len, unit, |at, len| {
            files.read(path, at, len)?;
            files.write(&new, at, len)
        })?;
        files.close(&new)?;
        files.close(path)?;
    }
    Ok(())
}

/// Asks for the attributes of all, and computes so many microseconds for each.
///
/// # Errors
/// Of the files.
pub fn stat_all(files: &mut dyn Files, tree: &Tree, compute: f64) -> Result<()> {
    let paths = tree.files.iter().map(|(path, _)| path);
    for path in tree.dirs.iter().chain(paths) {
        files.stat(path)?;
        files.compute(compute)?;
    }
    Ok(())
}

/// Reads all files, and computes so many microseconds for each.
///
/// # Errors
/// Of the files.
pub fn read_all(files: &mut dyn Files, tree: &Tree, compute: f64) -> Result<()> {
    for (path, len) in &tree.files {
        files.compute(compute)?;
        read_whole(files, path, *len, UNIT)?;
    }
    Ok(())
}

/// Looks at all of a tree and removes it, as `rm -r` does.
///
/// # Errors
/// Of the files.
pub fn remove(files: &mut dyn Files, tree: &Tree) -> Result<()> {
    for (path, _) in &tree.files {
        files.stat(path)?;
        files.unlink(path)?;
    }
    for dir in tree.dirs.iter().rev() {
        files.rmdir(dir)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Files in memory: their lengths; directories have none.
    #[derive(Default)]
    struct Names(BTreeMap<String, Option<u64>>, u64);

    impl Names {
        fn len(&mut self, path: &str) -> &mut u64 {
            self.0.get_mut(path).unwrap().as_mut().unwrap()
        }
    }

    impl Files for Names {
        fn mkdir(&mut self, path: &str) -> Result<()> {
            assert!(self.0.insert(path.to_owned(), None).is_none());
            Ok(())
        }
        fn create(&mut self, path: &str) -> Result<()> {
            assert!(self.0.insert(path.to_owned(), Some(0)).is_none());
            Ok(())
        }
        fn open(&mut self, path: &str) -> Result<()> {
            self.len(path);
            Ok(())
        }
        fn close(&mut self, path: &str) -> Result<()> {
            self.open(path)
        }
        fn write(&mut self, path: &str, at: u64, len: u64) -> Result<()> {
            assert_eq!(*self.len(path), at);
            *self.len(path) += len;
            Ok(())
        }
        fn read(&mut self, path: &str, at: u64, len: u64) -> Result<()> {
            assert!(at + len <= *self.len(path));
            self.1 += len;
            Ok(())
        }
        fn stat(&mut self, path: &str) -> Result<()> {
            assert!(self.0.contains_key(path));
            Ok(())
        }
        fn unlink(&mut self, path: &str) -> Result<()> {
            assert!(self.0.remove(path).unwrap().is_some());
            Ok(())
        }
        fn rmdir(&mut self, path: &str) -> Result<()> {
            assert!(self.0.remove(path).unwrap().is_none());
            Ok(())
        }
        fn compute(&mut self, _: f64) -> Result<()> {
            Ok(())
        }
        fn sync(&mut self) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_tree_is_made_copied_read_and_removed() {
        let tree = with_lengths("win", 3, 50, 1 << 20);
        assert_eq!((tree.dirs.len(), tree.files.len()), (4, 50));
        assert!(tree.bytes().abs_diff(1 << 20) < 100, "{}", tree.bytes());
        let mut names = Names::default();
        make(&mut names, &tree).unwrap();
        copy(&mut names, &tree, "win", "copy", 4096, 0.0).unwrap();
        assert_eq!(names.1, tree.bytes());
        let [one, other] = ["win/dir1/file20.x", "copy/dir1/file20.x"].map(|path| *names.len(path));
        assert_eq!(one, other);
        stat_all(&mut names, &tree, 0.0).unwrap();
        read_all(&mut names, &tree, 0.0).unwrap();
        assert_eq!(names.1, 2 * tree.bytes());
        remove(&mut names, &tree).unwrap();
        assert_eq!(names.0.len(), 54);
        let lens: Vec<u64> = tree.files.iter().map(|(_, len)| *len).collect();
        let small = lens.iter().filter(|len| **len < tree.bytes() / 50).count();
        assert!(
            (28..45).contains(&small),
            "most are smaller than the mean: {small}"
        );
    }
}
