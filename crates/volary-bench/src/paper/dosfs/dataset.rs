//! A data set like the paper's: two software packages, 194 files in 7
//! directories, 978,634 bytes.
//!
//! The paper does not give the sizes. Those here follow an exponential
//! distribution, which gives about the paper's waste for each allocation
//! size; nothing is random.

/// Bytes in all files together.
pub const DATA_BYTES: u64 = 978_634;
/// Files.
const FILES: usize = 194;
/// The directories, each after the one that holds it.
pub const DIRS: [&str; 7] = [
    "pkg1", "pkg1/src", "pkg1/obj", "pkg1/doc", "pkg2", "pkg2/src", "pkg2/man",
];

/// A file of the data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Index into [`DIRS`].
    pub dir: usize,
    /// Its name, which fits 8.3.
    pub name: String,
    /// Its size in bytes.
    pub len: u64,
}

/// Returns the data set: the same each time.
pub fn dataset() -> Vec<File> {
    let quantile = |i: usize| -(1.0 - (i as f64 + 0.2) / FILES as f64).ln();
    let sum: f64 = (0..FILES).map(quantile).sum();
    let scale = DATA_BYTES as f64 / sum;
    let mut files: Vec<File> = (0..FILES)
        .map(|i| File {
            // Small and large ones in each directory.
            dir: i % DIRS.len(),
            name: format!("file{i:03}.c"),
            len: (quantile(i) * scale) as u64,
        })
        .collect();
    let got: u64 = files.iter().map(|f| f.len).sum();
    if let Some(last) = files.last_mut() {
        last.len += DATA_BYTES - got;
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_set_has_the_paper_s_numbers() {
        let files = dataset();
        assert_eq!(files.len(), 194);
        assert_eq!(files.iter().map(|f| f.len).sum::<u64>(), DATA_BYTES);
        assert!(files.iter().all(|f| f.len > 0 && f.dir < DIRS.len()));
    }
}
