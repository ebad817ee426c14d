//! `--layer` on commands that open volumes.

use crate::sandbox::{PROGRAM, Run, Sandbox};
use std::process::Command;

#[test]
fn layers_lie_over_the_volumes_of_a_command() {
    let sandbox = Sandbox::new();
    let line = "cp --layer quota=bytes=1M --layer audit=log words disk.img:/new";
    sandbox.run(line).ok();
    let log = String::from_utf8(sandbox.read("log")).unwrap();
    assert!(log.contains("create dir=1 name=\"new\""), "{log}");
    assert!(log.contains("len=6 -> ok"), "{log}");
    let refused = sandbox.run("cp --layer quota=bytes=10 words disk.img:/more");
    assert!(refused.fails(1).contains("quota exceeded"));
    sandbox.is_clean("disk.img");
}

/// Returns the lines of an audit file that are about what a word says, without time and caller.
fn lines(sandbox: &Sandbox, file: &str, word: &str) -> Vec<String> {
    let log = String::from_utf8(sandbox.read(file)).unwrap();
    let what = log.lines().filter_map(|line| line.splitn(4, ' ').nth(3));
    let about = what.filter(|what| what.starts_with(word));
    about.map(str::to_owned).collect()
}

#[test]
fn an_audit_records_who_opens_and_reads_if_it_is_asked_to() {
    let sandbox = Sandbox::new();
    sandbox
        .run("cat --layer audit=plain unix.img:/docs/a.txt")
        .ok();
    assert_eq!(sandbox.read("plain"), b"", "not unless it is asked to");
    let line = "cat --layer audit=log,reads unix.img:/docs/a.txt";
    assert_eq!(sandbox.run(line).ok(), "words\n");
    let found = lines(&sandbox, "log", "lookup");
    assert!(found[0].contains("name=\"docs\" -> ok node="), "{found:?}");
    let opened = lines(&sandbox, "log", "open node=");
    let open = opened[0].split_once("mode=Read -> ok ").unwrap().1;
    let read = lines(&sandbox, "log", &format!("read {open} offset=0"));
    assert!(read[0].ends_with("-> ok got=6"), "{read:?}");
    let closed = lines(&sandbox, "log", &format!("close {open}"));
    assert_eq!(closed, [format!("close {open} -> ok")]);
    sandbox
        .run("cat --layer audit=log,reads unix.img:/none")
        .fails(1);
    let refused = lines(&sandbox, "log", "lookup dir=1 name=\"none\"");
    assert!(refused[0].ends_with("-> NotFound"), "{refused:?}");
}

#[test]
fn an_audit_of_reads_is_bounded_and_says_what_it_left_out() {
    let sandbox = Sandbox::new();
    let line = "ls -lR --layer audit=log,reads,size=300 unix.img";
    sandbox.run(line).ok();
    let log = String::from_utf8(sandbox.read("log")).unwrap();
    assert!(log.len() < 500, "{log}");
    assert!(log.contains(" reads-end size=300\n"), "{log}");
    assert!(
        log.lines().last().unwrap().contains(" left-out reads="),
        "{log}"
    );
    let line = "cp --layer audit=more,reads,size=1 words unix.img:/new";
    sandbox.run(line).ok();
    assert_eq!(lines(&sandbox, "more", "create").len(), 1, "a change");
    let said = sandbox.run("ls --layer audit=log,rate=5 unix.img").fails(2);
    assert!(said.contains("expected FILE, or FILE,reads"), "{said}");
}

#[test]
fn a_fat_volume_keeps_any_name_under_munge() {
    let sandbox = Sandbox::new();
    sandbox
        .run("cp --layer munge=below words disk.img:/a?b")
        .ok();
    let names = sandbox.run("ls disk.img:/").ok();
    assert!(names.contains("a%3Fb\n"), "{names}");
    let names = sandbox.run("ls --layer munge=below disk.img:/").ok();
    assert!(names.contains("a?b\n"), "{names}");
    sandbox.is_clean("disk.img");
}

#[test]
fn symlinks_are_shown_as_what_they_lead_to() {
    let sandbox = Sandbox::new();
    let long = sandbox.run("ls -l --layer symlinks unix.img:/").ok();
    assert!(long.contains(" link\n") && !long.contains("->"), "{long}");
}

#[test]
fn a_stack_of_layers_is_not_noticed() {
    let sandbox = Sandbox::new();
    let stack = "--layer dircache --layer throttle=ops=1000000 --layer munge --layer squash=0:0";
    let ls = sandbox.run("ls -lR unix.img").ok();
    assert_eq!(sandbox.run(&format!("ls -lR {stack} unix.img")).ok(), ls);
    sandbox.run(&format!("mkdir {stack} unix.img:/made")).ok();
    sandbox.is_clean("unix.img");
}

#[test]
fn a_layer_that_makes_no_sense_is_refused_in_one_line() {
    let sandbox = Sandbox::new();
    for (line, words) in [
        (
            "ls --layer casefold disk.img",
            "finds names in any case as it is",
        ),
        ("ls --layer symlinks disk.img", "has none to follow"),
        ("ls --layer nope disk.img", "unknown layer"),
        ("ls --layer throttle=0 disk.img", "expected ops=N"),
    ] {
        let told = sandbox.run(line).fails(2);
        assert!(told.contains(words), "{told}");
    }
    let text = sandbox.run("formats").ok();
    assert!(text.contains("throttle=ops=N,bytes=SIZE"), "{text}");
    sandbox.run("man pages").ok();
    let page = String::from_utf8(sandbox.read("pages/volary.1")).unwrap();
    assert!(
        page.contains(".SH LAYERS") && page.contains("\\fBmunge"),
        "{page}"
    );
}

#[test]
fn an_encrypted_volume_shows_itself_to_those_who_know_the_words() {
    let sandbox = Sandbox::new();
    sandbox.write("open", b"correct horse\n");
    sandbox.write_secret("pass", b"correct horse\n");
    sandbox.write_secret("wrong", b"wrong horse\n");
    sandbox.run("mkfs --size 16M secret.img").ok();
    let told = sandbox.run("ls --layer crypt=wrong disk.img").fails(2);
    assert!(told.contains("is not encrypted"), "{told}");
    let told = sandbox.run("ls --layer crypt secret.img").fails(2);
    assert!(told.contains("set VOLARY_CRYPT_PASSPHRASE"), "{told}");
    let told = sandbox.run("ls --layer crypt=open secret.img").fails(2);
    assert!(
        told.contains("open: others have rights on it (mode 0644); chmod 600"),
        "{told}"
    );
    if rustix::process::geteuid().is_root() {
        sandbox.write_secret("given", b"correct horse\n");
        std::os::unix::fs::chown(sandbox.path("given"), Some(1234), None).unwrap();
        let told = sandbox.run("ls --layer crypt=given secret.img").fails(2);
        assert!(
            told.contains("another user owns it (number 1234)"),
            "{told}"
        );
    }
    sandbox
        .run("cp --layer crypt=passphrase-file=pass words secret.img:/Words")
        .ok();
    let plain = sandbox.run("ls -a secret.img").ok();
    assert!(
        plain.contains(".volary-crypt") && !plain.contains("Words"),
        "{plain}"
    );
    assert_eq!(
        sandbox.run("ls -a --layer crypt=pass secret.img").ok(),
        "Words\n"
    );
    // The second is what there was first; the first goes before.
    let given = |all: &[(&str, &str)]| {
        let mut command = sandbox.command(&["cat", "--layer", "crypt", "secret.img:/Words"]);
        command.envs(all.iter().copied()).output().unwrap().stdout
    };
    let (own, old) = ("VOLARY_CRYPT_PASSPHRASE", "VOLARY_PASSWORD");
    assert_eq!(
        given(&[(own, "correct horse"), (old, "secret")]),
        b"words\n"
    );
    assert_eq!(given(&[(old, "correct horse")]), b"words\n");
    assert_eq!(given(&[(own, "secret"), (old, "correct horse")]), b"");
    let told = sandbox.run("ls --layer crypt=wrong secret.img").fails(1);
    assert!(told.contains("wrong passphrase"), "{told}");
    sandbox.is_clean("secret.img");
    let image = sandbox.read("secret.img");
    assert!(!image.windows(6).any(|part| part == b"words\n"));
}

#[test]
fn a_passphrase_is_asked_for_at_a_terminal_and_not_shown() {
    let sandbox = Sandbox::empty();
    sandbox.run("mkfs -q --size 16M secret.img").ok();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/asked.py");
    let asked = |words: &str, answers: &[&str]| {
        let mut command = Command::new("python3");
        command.arg(script).arg(PROGRAM).args(words.split(' '));
        command
            .arg("--")
            .args(answers)
            .current_dir(sandbox.path(""));
        for name in ["VOLARY_CRYPT_PASSPHRASE", "VOLARY_PASSWORD"] {
            command.env_remove(name);
        }
        let run = Run::of(&command.output().unwrap());
        assert!(!run.out.contains("horse"), "{}", run.out);
        run
    };
    let make = "mkdir --layer crypt secret.img:/Words";
    let differ = asked(make, &["correct horse", "wrong horse"]);
    assert!(
        differ.out.contains("New passphrase of secret.img: |"),
        "{}",
        differ.out
    );
    assert!(
        differ.out.contains("the passphrases differ"),
        "{}",
        differ.out
    );
    assert_eq!(differ.code, 2);
    let made = asked(make, &["correct horse", "correct horse"]);
    assert_eq!(made.code, 0, "{}", made.out);
    let list = "ls --layer crypt secret.img";
    let listed = asked(list, &["correct horse"]);
    assert!(
        listed.out.starts_with("Passphrase of secret.img: |"),
        "{}",
        listed.out
    );
    assert!(listed.out.contains("Words"), "{}", listed.out);
    assert_eq!(asked(list, &["wrong horse"]).code, 1);
}
