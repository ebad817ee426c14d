//! The command with a format and a scheme of its own: every verb has them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

fn volary(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_volary-with-tar"));
    command.args(args).output().expect("volary")
}

/// Runs it; returns what it printed.
fn done(args: &[&str]) -> String {
    let out = volary(args);
    assert!(
        out.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8(out.stdout).expect("text")
}

/// Runs what is refused; returns the one line that says so.
fn refused(args: &[&str]) -> String {
    let out = volary(args);
    assert!(!out.status.success(), "{args:?} was done");
    let told = String::from_utf8(out.stderr).expect("text");
    assert_eq!(told.lines().count(), 1, "{args:?}: {told}");
    told
}

fn run(command: &mut Command) {
    assert!(
        command.status().expect("a program").success(),
        "{command:?}"
    );
}

struct Rig {
    dir: tempfile::TempDir,
    tar: String,
}

impl Rig {
    /// Returns a tree, and an archive of it by GNU tar.
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let tree = dir.path().join("tree");
        std::fs::create_dir_all(tree.join("docs/deep")).expect("a tree");
        std::fs::write(tree.join("docs/words.txt"), "some words\n").expect("a file");
        std::fs::write(tree.join("large"), vec![9; 300_000]).expect("a file");
        std::fs::hard_link(tree.join("large"), tree.join("docs/same")).expect("a link");
        std::os::unix::fs::symlink("words.txt", tree.join("docs/link")).expect("a symlink");
        std::fs::write(tree.join("docs/deep").join("n".repeat(180)), "long").expect("a file");
        let tar = dir.path().join("tree.tar");
        run(Command::new("tar")
            .arg("-C")
            .arg(&tree)
            .arg("-cf")
            .arg(&tar)
            .arg("."));
        let tar = tar.to_str().expect("text").to_owned();
        Self { dir, tar }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("text").to_owned()
    }

    fn same_as_tree(&self, copy: &Path) {
        run(Command::new("diff")
            .args(["-r", "--no-dereference"])
            .arg(self.path("tree"))
            .arg(copy));
    }
}

#[test]
fn an_archive_is_listed_read_and_copied() {
    let rig = Rig::new();
    let of = |path: &str| format!("{}:{path}", rig.tar);
    assert_eq!(
        done(&["ls", &of("/docs")])
            .split_whitespace()
            .collect::<Vec<_>>(),
        ["deep", "link", "same", "words.txt"]
    );
    assert_eq!(done(&["cat", &of("/docs/link")]), "some words\n");
    done(&["cp", "-r", &of("/"), &rig.text("copy")]);
    rig.same_as_tree(&rig.path("copy"));
    assert!(done(&["info", &rig.tar]).contains("tar"));
    // Bulk reads go to the places that the driver tells.
    let sums = done(&["bulk", "--sha256", &rig.tar]);
    let mut sha256sum = Command::new("sha256sum");
    let sum = sha256sum
        .arg(rig.path("tree/large"))
        .output()
        .expect("sha256sum");
    let sum = String::from_utf8(sum.stdout).expect("text");
    let sum = sum.split_whitespace().next().expect("a sum");
    assert_eq!(sums.matches(sum).count(), 2, "{sums}");
}

#[test]
fn what_the_format_does_not_do_is_refused_in_a_line_that_names_it() {
    let rig = Rig::new();
    let image = rig.text("new.tar");
    for args in [
        &["mkfs", "-t", "tar", "--size", "1M", &image][..],
        &["fsck", "-n", &rig.tar],
        &["map", &rig.tar],
        &["dump", &rig.tar],
        &["dump", &rig.tar, "header"],
        &["tune", "--label", "x", &rig.tar],
        &["badsect", &rig.tar, "1"],
    ] {
        let told = refused(args);
        assert!(told.contains("tar volumes"), "{args:?}: {told}");
    }
    assert!(refused(&["mkfs", "-t", "tar", "--size", "1M", &image]).contains("make one with tar"));
    assert!(!rig.path("new.tar").exists());
    let told = refused(&["mkdir", &format!("{}:/new", rig.tar)]);
    assert!(told.contains("read-only"), "{told}");
}

#[test]
fn formats_and_schemes_are_in_the_lists_and_the_help() {
    let formats = done(&["formats"]);
    assert!(
        formats.contains("tar: tar") && formats.contains("kv:FILE"),
        "{formats}"
    );
    assert!(done(&["formats", "--json"]).contains("\"kv\""));
    assert!(done(&["--help"]).contains("kv:FILE"));
    assert!(done(&["ls", "--help"]).contains("v7") && done(&["ls", "--help"]).contains("tar"));
    let told = refused(&["ls", "--type", "hfs", "x"]);
    assert!(told.contains("tar"), "{told}");
    assert!(refused(&["ls", "--layer", "none", "mem:"]).contains("known are"));
}

#[test]
fn a_scheme_is_a_volume_wherever_one_is_asked_for() {
    let rig = Rig::new();
    let config = rig.path("config");
    std::fs::write(&config, "net/host=example\nname=value\n").expect("a file");
    let source = format!("kv:{}", config.display());
    assert_eq!(done(&["cat", &format!("{source}:/net/host")]), "example");
    done(&["cp", "-r", &format!("{source}:/net"), &rig.text("net")]);
    assert_eq!(
        std::fs::read(rig.path("net/host")).expect("a copy"),
        b"example"
    );
    assert!(done(&["tree", "--layer", "subtree=/net", &source]).contains("host"));
    assert!(done(&["info", &source]).contains("kv"));
    assert!(refused(&["fsck", "-n", &source]).contains("on no device"));
    assert!(refused(&["ls", "kv:/no/such/file"]).contains("/no/such/file"));
    assert!(refused(&["ls", "-o", "colour=red", &source]).contains("colour"));
    // A file of such a name is reached with a backslash, and with its directory.
    std::fs::copy(&rig.tar, rig.path("kv:x")).expect("a copy");
    let in_dir = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_volary-with-tar"));
        command
            .args(args)
            .current_dir(rig.dir.path())
            .output()
            .expect("volary")
            .status
            .success()
    };
    assert!(in_dir(&["ls", r"kv\:x:/docs"]) && in_dir(&["ls", "./kv\\:x:/docs"]));
    assert!(!in_dir(&["ls", "kv:x:/docs"]));
}

/// A server, which is ended when it is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Serves volumes by NFS, with everything given up; returns the port.
fn serve(rig: &Rig, volumes: &[&str]) -> (Server, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_volary-with-tar"));
    command
        .args(["serve", "--json", "--nfs", "127.0.0.1:0", "--key"])
        .arg(rig.path("key"))
        .args(volumes);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("volary");
    let mut line = String::new();
    let out = child.stdout.take().expect("output");
    BufReader::new(out).read_line(&mut line).expect("a line");
    let server = Server(child);
    let at = line
        .split("127.0.0.1:")
        .nth(1)
        .expect("an address")
        .to_owned();
    let port = at.chars().take_while(char::is_ascii_digit).collect();
    (server, port)
}

#[test]
fn an_archive_and_a_scheme_are_served_behind_the_sandbox() {
    let rig = Rig::new();
    std::fs::write(rig.path("config"), "net/host=example\n").expect("a file");
    let source = format!("kv:{}", rig.text("config"));
    let (_server, port) = serve(&rig, &[&rig.tar, &source]);
    let export = |name: &str| format!("nfs://127.0.0.1:{port}/{name}");
    done(&[
        "cp",
        "-r",
        &format!("{}:/", export("tree")),
        &rig.text("copy"),
    ]);
    rig.same_as_tree(&rig.path("copy"));
    assert_eq!(
        done(&["cat", &format!("{}:/net/host", export("config"))]),
        "example"
    );
    // The scheme reads its file while it is served: it said that it needs it.
    std::fs::write(rig.path("config"), "net/host=another\nnew=1\n").expect("a file");
    assert_eq!(done(&["cat", &format!("{}:/new", export("config"))]), "1");
}
