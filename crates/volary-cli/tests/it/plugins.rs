//! `--plugin` and `plugin:NAME?CONFIG`: drivers that are loaded at run time, as users have them.

use crate::sandbox::{Sandbox, noise};
use crate::serving::{Serving, client};
use std::path::Path;
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Compiles an example into `libNAME.so` of the sandbox; false where it cannot be.
pub(crate) fn build(sandbox: &Sandbox, name: &str, needs: &str, words: &[&str]) -> bool {
    if !Path::new(needs).exists() {
        println!("SKIPPED: no {needs}");
        return false;
    }
    compile(sandbox, name, &format!("examples/plugins/{name}.c"), words);
    true
}

/// Compiles a source of the workspace into `libNAME.so` of the sandbox.
pub(crate) fn compile(sandbox: &Sandbox, name: &str, source: &str, words: &[&str]) {
    let done = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-I"])
        .arg(format!("{ROOT}/crates/volary-plugin/include"))
        .arg("-o")
        .arg(sandbox.path(&format!("lib{name}.so")))
        .arg(format!("{ROOT}/{source}"))
        .args(words)
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

fn with_sqlite(sandbox: &Sandbox) -> bool {
    build(sandbox, "sqlite", "/usr/include/sqlite3.h", &["-lsqlite3"])
}

#[test]
fn the_smallest_plug_in_is_a_volume_like_any_other() {
    let sandbox = Sandbox::empty();
    build(&sandbox, "hello", "/usr/include/stdint.h", &[]);
    for words in [
        "cat --plugin libhello.so plugin:hello:/hello.txt",
        "cat --plugin libhello.so --plugin-in-process plugin:hello:/hello.txt",
        "cat -o plugin-in-process plugin:./libhello.so:/hello.txt",
        "cat plugin:./libhello.so:/hello.txt",
    ] {
        assert_eq!(sandbox.run(words).ok(), "Hello, world.\n", "{words}");
    }
    let listed = sandbox.run("ls plugin:./libhello.so").ok();
    assert_eq!(listed, "hello.txt\n");
    sandbox.run("cp plugin:./libhello.so:/hello.txt out").ok();
    assert_eq!(sandbox.read("out"), b"Hello, world.\n");
}

#[test]
fn what_names_no_plug_in_is_one_line() {
    let sandbox = Sandbox::empty();
    build(&sandbox, "hello", "/usr/include/stdint.h", &[]);
    sandbox.write("libtext.so", b"no library\n");
    for (words, part) in [
        ("ls plugin:missing", "there is no plug-in libmissing.so"),
        ("ls plugin:./libmissing.so", "there is no such plug-in"),
        ("ls plugin:./libtext.so", "is no library"),
        ("ls plugin:", "no name of a plug-in"),
        (
            "ls -o nonsense plugin:./libhello.so",
            "unknown option 'nonsense'",
        ),
        (
            "ls -o plugin-timeout=x plugin:./libhello.so",
            "plugin-timeout",
        ),
    ] {
        let run = sandbox.run(words);
        assert_ne!(run.code, 0, "{words}");
        assert_eq!(run.err.lines().count(), 1, "{words}: {}", run.err);
        assert!(run.err.contains(part), "{words}: {}", run.err);
    }
}

#[test]
fn a_tree_goes_into_a_database_and_comes_out() {
    let sandbox = Sandbox::empty();
    if !with_sqlite(&sandbox) {
        return;
    }
    let volume = "--plugin ./libsqlite.so plugin:sqlite?v.db";
    let run = |words: &str| sandbox.run(words).ok();
    run("cp -r --plugin ./libsqlite.so tree plugin:sqlite?v.db:/");
    assert_eq!(run(&format!("cat {volume}:/tree/a.txt")), "alpha\n");
    run(&format!("cp -r {volume}:/tree back"));
    assert_eq!(sandbox.read("back/sub/b.bin"), noise(300_000));
    run(&format!("rm -r {volume}:/tree"));
    assert_eq!(run(&format!("ls {volume}")), "");
    // A look changes nothing.
    let refused = sandbox.run(&format!("mkdir -o ro {volume}:/x"));
    assert_ne!(refused.code, 0);
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter();
    let read = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("children"));
    let texts: Vec<String> = tasks
        .flatten()
        .flatten()
        .filter_map(|t| read(t).ok())
        .collect();
    let words = texts.iter().flat_map(|text| text.split_whitespace());
    words.filter_map(|word| word.parse().ok()).collect()
}

/// Returns the processes of a server that start those of plug-ins.
fn zygotes(server: u32) -> Vec<u32> {
    let is_zygote = |pid: &u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.ends_with(b"--attend\0plugin\0")
    };
    let mut all = children(server);
    all.retain(is_zygote);
    all
}

/// Returns the process of a plug-in of a server: what its attendant has forked.
fn worker(server: u32) -> Option<u32> {
    let zygote = *zygotes(server).first()?;
    children(zygote).first().copied()
}

#[test]
fn a_plug_in_that_runs_in_the_server_has_no_process_that_waits_to_start_it() {
    let sandbox = Sandbox::empty();
    build(&sandbox, "hello", "/usr/include/stdint.h", &[]);
    for (words, count) in [
        ("--plugin libhello.so plugin:hello", 1),
        ("--plugin libhello.so --plugin-in-process plugin:hello", 0),
        ("--plugin libhello.so -o plugin-in-process plugin:hello", 0),
        (
            "--plugin libhello.so --plugin-in-process -o plugin-in-process=no plugin:hello",
            1,
        ),
    ] {
        let serving = Serving::start(&sandbox, words);
        assert_eq!(zygotes(serving.id()).len(), count, "{words}");
        if let Some(run) = client(&sandbox, "nfs-cat", &[&serving.url("/hello/hello.txt")]) {
            assert_eq!(run.out, "Hello, world.\n", "{words}: {}", run.err);
        }
        serving.stop("-TERM");
    }
}

#[test]
fn a_server_that_has_confined_itself_starts_a_plug_in_again() {
    let sandbox = Sandbox::empty();
    if !with_sqlite(&sandbox) {
        return;
    }
    sandbox.write("words", b"words\n");
    sandbox
        .run("cp --plugin ./libsqlite.so words plugin:sqlite?v.db:/")
        .ok();
    let serving = Serving::start(&sandbox, "--plugin ./libsqlite.so plugin:sqlite?v.db mem:");
    assert_eq!(serving.said["volumes"][0]["export"], "/sqlite");
    let (file, other) = (
        serving.url("/sqlite/words"),
        serving.url("/demo/docs/words.txt"),
    );
    for kill in 0..6 {
        let mut tries = 0;
        loop {
            let Some(run) = client(&sandbox, "nfs-cat", &[&file]) else {
                return;
            };
            if run.code == 0 && run.out == "words\n" {
                break;
            }
            tries += 1;
            assert!(tries < 50, "after {kill} kills: {}", run.err);
        }
        let run = client(&sandbox, "nfs-cat", &[&other]).unwrap();
        assert_eq!(run.code, 0, "another volume: {}", run.err);
        let worker = worker(serving.id()).expect("a worker").to_string();
        let killed = Command::new("kill").args(["-9", &worker]).status().unwrap();
        assert!(killed.success());
    }
    let run = client(&sandbox, "nfs-cat", &[&file]);
    assert!(run.is_some());
    let ended = serving.end("-TERM");
    let lines: Vec<_> = ended
        .err
        .lines()
        .filter(|l| l.contains("signal 9; the next call starts it again"))
        .collect();
    assert!((5..=6).contains(&lines.len()), "{}", ended.err);
    assert!(!ended.err.contains("panic"), "{}", ended.err);
}
