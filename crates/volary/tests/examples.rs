//! The examples do what they say.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;
use volary::Vol;

#[path = "../examples/check.rs"]
mod check;
#[path = "../examples/copy_out.rs"]
mod copy_out;
#[path = "../examples/make_image.rs"]
mod make_image;
#[path = "../examples/one_folder.rs"]
mod one_folder;
#[path = "../examples/read_files.rs"]
mod read_files;
#[path = "../examples/serve_nfs.rs"]
mod serve_nfs;
#[path = "../examples/sum_tree.rs"]
mod sum_tree;
#[path = "../examples/walk_tree.rs"]
mod walk_tree;

/// Which example this process is.
const EXAMPLE: &str = "VOLARY_EXAMPLE";

type Main = fn() -> Result<(), Box<dyn std::error::Error>>;

const EXAMPLES: &[(&str, Main)] = &[
    ("make_image", make_image::main),
    ("read_files", read_files::main),
    ("walk_tree", walk_tree::main),
    ("copy_out", copy_out::main),
    ("one_folder", one_folder::main),
    ("serve_nfs", serve_nfs::main),
    ("sum_tree", sum_tree::main),
    ("check", check::main),
];

const TESTS: &[(&str, fn())] = &[
    (
        "a_tree_goes_into_a_new_image_in_ten_lines_and_comes_out_of_it",
        a_tree_goes_into_a_new_image_in_ten_lines_and_comes_out_of_it,
    ),
    ("examples_that_look", examples_that_look),
    ("an_example_that_serves", an_example_that_serves),
];

/// Examples are programs, with arguments: this one is each of them in turn, so it has no harness.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    if let Ok(wanted) = std::env::var(EXAMPLE) {
        let found = EXAMPLES.iter().find(|(name, _)| *name == wanted);
        return found.expect("an example").1();
    }
    println!("\nrunning {} tests", TESTS.len());
    let mut failed: Vec<&str> = Vec::new();
    for (name, test) in TESTS {
        let is_well = std::panic::catch_unwind(test).is_ok();
        println!("test {name} ... {}", if is_well { "ok" } else { "FAILED" });
        failed.extend((!is_well).then_some(*name));
    }
    if failed.is_empty() {
        println!("\ntest result: ok. {} passed; 0 failed", TESTS.len());
        return Ok(());
    }
    println!("\nfailures:");
    failed.iter().for_each(|name| println!("    {name}"));
    println!("\ntest result: FAILED");
    std::process::exit(101);
}

/// Returns a program that is an example.
fn example(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(EXAMPLE, name);
    command
}

fn told(name: &str, args: &[&str]) -> String {
    let done = example(name).args(args).output().unwrap();
    let err = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{name}: {err}");
    String::from_utf8(done.stdout).unwrap()
}

/// Returns a tree of three files, and an image that it was copied into.
fn image() -> (TempDir, PathBuf, String) {
    let dir = TempDir::new().unwrap();
    let tree = dir.path().join("tree");
    std::fs::create_dir_all(tree.join("docs/deep")).unwrap();
    std::fs::write(tree.join("Read.Me"), "begin here\n").unwrap();
    std::fs::write(tree.join("docs/a"), vec![b'a'; 100_000]).unwrap();
    std::fs::write(tree.join("docs/deep/b"), "").unwrap();
    let image = dir.path().join("disk.img").to_str().unwrap().to_owned();
    let made = told("make_image", &[tree.to_str().unwrap(), &image]);
    assert_eq!(made, "3 files\n");
    (dir, tree, image)
}

fn a_tree_goes_into_a_new_image_in_ten_lines_and_comes_out_of_it() {
    let text = include_str!("../examples/make_image.rs");
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("//"));
    assert!(lines.count() <= 10);
    let (dir, tree, image) = image();
    let out = dir.path().join("out");
    let told = told("copy_out", &[&image, "/", out.to_str().unwrap()]);
    assert_eq!(told, "3 files, 100011 bytes\n");
    for name in ["Read.Me", "docs/a", "docs/deep/b"] {
        let (before, after) = (
            std::fs::read(tree.join(name)),
            std::fs::read(out.join(name)),
        );
        assert_eq!(before.unwrap(), after.unwrap(), "{name}");
    }
}

fn examples_that_look() {
    let (_dir, _, image) = image();
    assert_eq!(
        told("read_files", &[&image, "/Read.Me", "Read.Me"]),
        "begin here\nbegin here\n"
    );
    let of_folder = told("one_folder", &[&image, "/docs", "/a"]);
    assert_eq!(of_folder, "100000 bytes\n");
    assert_eq!(told("sum_tree", &[&image]), "100011 bytes\n");
    assert_eq!(told("check", &[&image]), "clean\n");
    let mut walked: Vec<String> = told("walk_tree", &[&image])
        .lines()
        .map(str::to_owned)
        .collect();
    walked.sort();
    let expected = [
        "         0 /docs/deep/b",
        "        11 /Read.Me",
        "    100000 /docs/a",
    ];
    assert_eq!(walked, expected);
    let failed = example("read_files")
        .args([&image, "/none"])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&failed.stderr).contains("NotFound"));
}

fn an_example_that_serves() {
    let (_dir, _, image) = image();
    let mut server = example("serve_nfs")
        .arg(&image)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(server.stdout.take().unwrap())
        .read_line(&mut url)
        .unwrap();
    let vol = Vol::open(url.trim()).unwrap();
    assert_eq!(vol.read("/Read.Me").unwrap(), b"begin here\n");
    assert!(vol.write("/Read.Me", "x").is_err());
    drop(vol);
    drop(server.stdin.take());
    assert!(server.wait().unwrap().success());
}
