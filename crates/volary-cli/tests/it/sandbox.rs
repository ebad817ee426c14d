//! A directory with images and a tree, and the program run in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A directory of its own, with:
/// `tree/` — `a.txt`, `sub/b.bin`, `sub/deep/empty`;
/// `disk.img` — FAT16 with `README.txt`, `docs/a.txt`, `docs/b.txt`, `empty/`;
/// `unix.img` — the same on FAT32 with UNIX modes, and a symlink `link`;
/// `blank.img` — 64 MiB of zeros; `mnt/`.
pub(crate) struct Sandbox {
    dir: TempDir,
}

/// What a run gave.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Run {
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Returns the output of a run that went well, without a word on standard error.
    pub(crate) fn ok(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{}", self.out);
        self.out
    }

    /// Returns the one line of a run that failed with `code`.
    pub(crate) fn fails(self, code: i32) -> String {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        assert!(
            self.err.starts_with("volary: ") && self.err.lines().count() == 1,
            "not one line: {}",
            self.err
        );
        self.err
    }
}

impl Run {
    /// The two lines of one that served a volume whose device failed: when it did, and
    /// at the end, what was lost by it.
    pub(crate) fn tells_of_a_failed_write(self, source: &str) {
        assert_eq!(self.code, 1, "{}{}", self.out, self.err);
        let [first, last] = &self.err.lines().collect::<Vec<_>>()[..] else {
            panic!("not two lines: {}", self.err);
        };
        let fails = format!("volary: {source}: failed while it was served: write of ");
        assert!(first.starts_with(&fails), "{first}");
        assert!(last.starts_with(&format!("volary: {source}: ")), "{last}");
        assert!(last.contains("a write to the volume failed"), "{last}");
    }
}

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_volary");

impl Sandbox {
    /// Only the directory and the tree.
    pub(crate) fn empty() -> Self {
        let base = Path::new("/dev/shm");
        let dir = if base.is_dir() {
            TempDir::new_in(base)
        } else {
            TempDir::new()
        };
        let sandbox = Self { dir: dir.unwrap() };
        fs::create_dir_all(sandbox.path("tree/sub/deep/empty")).unwrap();
        fs::create_dir(sandbox.path("mnt")).unwrap();
        sandbox.write("tree/a.txt", b"alpha\n");
        sandbox.write("tree/sub/b.bin", &noise(300_000));
        sandbox
    }

    /// With everything.
    pub(crate) fn new() -> Self {
        let sandbox = Self::empty();
        sandbox.write("words", b"words\n");
        sandbox
            .run("mkfs -q -t fat16 --size 64M --seed 1 disk.img")
            .ok();
        sandbox
            .run("mkfs -q -t fat32 --size 64M --seed 1 --unix unix.img")
            .ok();
        for image in ["disk.img", "unix.img"] {
            sandbox.run(&format!("cp words {image}:/README.txt")).ok();
            sandbox
                .run(&format!("mkdir {image}:/docs {image}:/empty"))
                .ok();
            sandbox.run(&format!("cp words {image}:/docs/a.txt")).ok();
            sandbox.run(&format!("cp words {image}:/docs/b.txt")).ok();
        }
        sandbox.run("ln -s docs/a.txt unix.img:/link").ok();
        fs::File::create(sandbox.path("blank.img"))
            .unwrap()
            .set_len(64 << 20)
            .unwrap();
        sandbox
    }

    /// One whose directory `src` has a directory with the file `words`, and a symlink to that.
    pub(crate) fn with_tree() -> Self {
        let sandbox = Self::empty();
        fs::create_dir_all(sandbox.path("src/docs")).unwrap();
        sandbox.write("src/docs/words", b"words\n");
        std::os::unix::fs::symlink("docs/words", sandbox.path("src/link")).unwrap();
        sandbox
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    /// A file that others may not read.
    pub(crate) fn write_secret(&self, name: &str, bytes: &[u8]) {
        use std::os::unix::fs::PermissionsExt;
        self.write(name, bytes);
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o600)).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Runs the program with the words of `line`.
    pub(crate) fn run(&self, line: &str) -> Run {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.run_words(&words)
    }

    pub(crate) fn run_words(&self, words: &[&str]) -> Run {
        Run::of(&self.command(words).output().unwrap())
    }

    /// Runs a line of the shell, in which `volary` is the program.
    pub(crate) fn shell(&self, line: &str) -> Run {
        let dir = Path::new(PROGRAM).parent().unwrap().display().to_string();
        let path = format!("{dir}:{}", std::env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("sh");
        shell
            .args(["-c", line])
            .env("PATH", path)
            .current_dir(self.dir.path());
        Run::of(&shell.stdin(Stdio::null()).output().unwrap())
    }

    /// Makes a directory `far` whose entries lie past the first 16 MiB.
    pub(crate) fn with_a_far_directory(&self, image: &str) {
        fs::File::create(self.path("zeros"))
            .unwrap()
            .set_len(20 << 20)
            .unwrap();
        self.run(&format!("cp zeros {image}:/")).ok();
        self.run(&format!("mkdir {image}:/far")).ok();
    }

    /// Returns the program, and a device that fails past its first 16 MiB: no file may
    /// be written there.
    pub(crate) fn short_of_room(&self, words: &[&str]) -> Command {
        let mut shell = Command::new("sh");
        let line = "trap '' XFSZ; ulimit -f 32768; exec \"$0\" \"$@\"";
        shell.args(["-c", line, PROGRAM]).args(words);
        shell.current_dir(self.dir.path()).stdin(Stdio::null());
        shell
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .args(words)
            .current_dir(self.dir.path())
            .stdin(Stdio::null());
        command
    }

    /// Nothing of the host's FAT tools to complain about.
    pub(crate) fn is_clean(&self, image: &str) {
        let run = self.run(&format!("fsck -n {image}"));
        assert_eq!(run.code, 0, "{}{}", run.out, run.err);
        let Ok(output) = Command::new("fsck.fat")
            .arg("-n")
            .arg(self.path(image))
            .output()
        else {
            return;
        };
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
}

/// Returns bytes without a pattern, the same each time.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| next()).collect()
}
