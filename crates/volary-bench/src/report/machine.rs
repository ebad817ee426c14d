//! The machine, as `/proc` tells of it.

use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// A machine and its system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Processors that can be used.
    pub processors: usize,
    /// Bytes of memory.
    pub memory: u64,
    /// The kernel's name and version.
    pub kernel: String,
    /// The distribution's name.
    pub system: String,
    /// The file system that images and trees were on.
    pub files_on: String,
}

impl Machine {
    /// Returns this machine, with the file system of the directory `files`. What it does not tell is empty or 0.
    pub fn here(files: &Path) -> Self {
        let name = rustix::system::uname();
        let part = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        Self {
            processor: after(&read("/proc/cpuinfo"), "model name"),
            processors: std::thread::available_parallelism().map_or(0, Into::into),
            memory: kib(&after(&read("/proc/meminfo"), "MemTotal")) * 1024,
            kernel: format!("{} {}", part(name.sysname()), part(name.release())),
            system: after(&read("/etc/os-release"), "PRETTY_NAME")
                .trim_matches('"')
                .to_owned(),
            files_on: file_system(files),
        }
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Returns what stands after a key and `:` or `=`.
fn after(text: &str, key: &str) -> String {
    let rest = text.lines().find_map(|line| line.strip_prefix(key));
    let value = rest.and_then(|rest| rest.trim_start().strip_prefix([':', '=']));
    value.unwrap_or_default().trim().to_owned()
}

fn kib(words: &str) -> u64 {
    let number = words.split_whitespace().next();
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// Returns the kind of the file system that a directory is on, as it is mounted last of all above the directory.
fn file_system(dir: &Path) -> String {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_path_buf());
    let mounts = read("/proc/self/mounts");
    let of = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let (at, kind) = (words.next()?.to_owned(), words.next()?.to_owned());
        dir.starts_with(&at).then_some((at.len(), kind))
    };
    let last = mounts.lines().filter_map(of).max_by_key(|(len, _)| *len);
    last.map_or(String::new(), |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_after_their_keys() {
        let text =
            "flags\t: fpu\nmodel name\t: A processor: fast\nMemTotal:       2048 kB\nNAME=\"x\"\n";
        assert_eq!(after(text, "model name"), "A processor: fast");
        assert_eq!(kib(&after(text, "MemTotal")), 2048);
        assert_eq!(
            (after(text, "NAME"), after(text, "none")),
            ("\"x\"".into(), String::new())
        );
    }

    #[test]
    fn a_directory_is_on_the_file_system_that_is_mounted_next_above_it() {
        assert_eq!(file_system(Path::new("/proc/self")), "proc");
        assert!(!file_system(Path::new("/nonexistent")).is_empty());
    }
}
