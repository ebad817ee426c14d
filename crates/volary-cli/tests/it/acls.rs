//! Who is let in by access lists: security descriptors that SMB clients set.

use crate::mounting::Mounting;
use crate::sandbox::{Run, Sandbox};
use crate::serving::{Serving, can_mount, client};
use std::path::Path;
use std::process::Command;
use std::thread;
use volary_testkit::oracle::python;

/// Their password is "password".
const USERS: &str = "\
root:0:0:8846F7EAEE8FB117AD06BDD830B7586C
me:1000:1000:8846F7EAEE8FB117AD06BDD830B7586C
other:1001:1001:8846F7EAEE8FB117AD06BDD830B7586C
third:1002:1002:8846F7EAEE8FB117AD06BDD830B7586C
";
/// A volume of each driver.
const DRIVERS: [(&str, &str); 7] = [
    ("mem", "mem:16M"),
    ("host", "host:dir"),
    ("ffs2", "v.img"),
    ("cedar", "v.img"),
    ("ffs1", "v.img"),
    ("fat16", "v.img"),
    ("fat16 --unix", "v.img"),
];

/// Makes what is to be served, for all to make files in.
fn make(sandbox: &Sandbox, driver: &str) {
    match driver {
        "mem" => {}
        "host" => {
            sandbox.shell("mkdir -m 777 dir").ok();
        }
        driver => {
            let words = format!("mkfs -q -t {driver} --size 16M v.img");
            sandbox.run(&words).ok();
            if driver != "fat16" {
                sandbox.run("chmod 777 v.img:/").ok();
            }
        }
    }
}

fn serve(sandbox: &Sandbox, volume: &str) -> Serving {
    let text = format!(
        "smb = '127.0.0.1:0'\nusers = 'users'\n[[volume]]\nvolume = '{volume}'\nname = 'v'\n"
    );
    sandbox.write_secret("users", USERS.as_bytes());
    sandbox.write("serve.toml", text.as_bytes());
    Serving::of(sandbox.command(&["serve", "--json", "--config", "serve.toml"]))
}

fn port(serving: &Serving) -> String {
    let address = serving.said["smb"].as_str().unwrap();
    address.rsplit(':').next().unwrap().to_owned()
}

/// Mounts a volume of each driver and gives it to the test; false where nothing can be mounted.
fn on_each_mount(test: impl Fn(&str, &Sandbox)) -> bool {
    for (driver, volume) in DRIVERS {
        let sandbox = Sandbox::empty();
        if !can_mount() {
            return false;
        }
        make(&sandbox, driver);
        sandbox.shell("chmod 755 .").ok();
        let mounting = Mounting::start(&sandbox, &["-o", "allow_other", volume]).unwrap();
        test(driver, &sandbox);
        mounting.end();
    }
    true
}

fn setfacl(sandbox: &Sandbox, words: &str) -> Option<Run> {
    let words: Vec<&str> = words.split_whitespace().collect();
    client(sandbox, "setfacl", &words)
}

/// Returns whether this user may read what is mounted there.
fn reads(sandbox: &Sandbox, uid: u32, gid: u32, name: &str) -> bool {
    let words = format!(
        "setpriv --reuid {uid} --regid {gid} --clear-groups cat mnt/{name} > /dev/null 2>&1"
    );
    sandbox.shell(&words).code == 0
}

/// Returns whether a list is obeyed on volumes of this driver; elsewhere it is refused.
fn obeys(driver: &str) -> bool {
    ["mem", "ffs2", "cedar"].contains(&driver)
}

#[test]
fn a_list_that_would_not_be_obeyed_is_refused_on_every_mount() {
    on_each_mount(|driver, sandbox| {
        std::fs::write(sandbox.path("mnt/f"), b"secret").unwrap();
        for words in [
            "-m u:1001:--- mnt/f",
            "-m u:1001:r mnt/f",
            "-d -m u:1001:rw mnt",
        ] {
            let Some(run) = setfacl(sandbox, words) else {
                return;
            };
            let is_refused = run.code != 0 && run.err.contains("Operation not supported");
            assert_eq!(is_refused, !obeys(driver), "{driver} {words}: {}", run.err);
            assert_eq!(
                run.code == 0,
                obeys(driver),
                "{driver} {words}: {}",
                run.err
            );
        }
        // Taking away what is not there is no failure.
        assert_eq!(setfacl(sandbox, "-b mnt/f").unwrap().code, 0, "{driver}");
    });
}

#[test]
fn a_list_lets_in_whom_it_names_and_nobody_else() {
    on_each_mount(|driver, sandbox| {
        if !obeys(driver) {
            return;
        }
        sandbox
            .shell("echo secret > mnt/f && chown 1000:1000 mnt/f && chmod 644 mnt/f")
            .ok();
        let Some(run) = setfacl(sandbox, "-m u:1001:--- mnt/f") else {
            return;
        };
        run.ok();
        let may = |uid, gid, name| reads(sandbox, uid, gid, name);
        assert!(!may(1001, 1001, "f") && may(1002, 1002, "f"), "{driver}");
        assert!(!may(1001, 1000, "f"), "{driver}: the user comes first");
        // A user and a group are let in where others are not.
        setfacl(sandbox, "-b mnt/f").unwrap().ok();
        setfacl(sandbox, "-m u:1001:r,g:2000:r,o::- mnt/f")
            .unwrap()
            .ok();
        assert!(may(1001, 1001, "f") && may(1003, 2000, "f"), "{driver}");
        assert!(!may(1002, 1002, "f"), "{driver}");
        // The group's bits are the mask.
        let mode = |name| {
            use std::os::unix::fs::MetadataExt;
            std::fs::metadata(sandbox.path("mnt").join(name))
                .unwrap()
                .mode()
                & 0o7777
        };
        assert_eq!(mode("f"), 0o640, "{driver}");
        sandbox.shell("chmod 600 mnt/f").ok();
        assert!(!may(1001, 1001, "f") && !may(1003, 2000, "f"), "{driver}");
        sandbox.shell("chmod 640 mnt/f").ok();
        assert!(may(1001, 1001, "f") && may(1003, 2000, "f"), "{driver}");
        let told = client(sandbox, "getfacl", &["-cn", "mnt/f"]).unwrap().ok();
        let expected =
            "user::rw-\nuser:1001:r--\ngroup::r--\ngroup:2000:r--\nmask::r--\nother::---\n\n";
        assert_eq!(told, expected, "{driver}");
        // Only the owner and root set one.
        let words = "setpriv --reuid 1001 --regid 1001 --clear-groups setfacl -m u:1001:rw mnt/f";
        assert_ne!(sandbox.shell(words).code, 0, "{driver}");
    });
}

#[test]
fn what_is_made_in_a_directory_has_its_list_and_not_the_umask() {
    on_each_mount(|driver, sandbox| {
        if !obeys(driver) {
            return;
        }
        sandbox.shell("mkdir mnt/d && chmod 755 mnt/d").ok();
        let Some(run) = setfacl(sandbox, "-d -m u:1001:rwx,g::-,o::- mnt/d") else {
            return;
        };
        run.ok();
        sandbox
            .shell("umask 077; echo secret > mnt/d/f; mkdir mnt/d/e; echo secret > mnt/d/e/f")
            .ok();
        for name in ["d/f", "d/e/f"] {
            assert!(reads(sandbox, 1001, 1001, name), "{driver} {name}");
            assert!(!reads(sandbox, 1002, 1002, name), "{driver} {name}");
            assert!(
                !reads(sandbox, 1002, 0, name),
                "{driver} {name}: the owning group"
            );
        }
        let told = client(sandbox, "getfacl", &["-cn", "mnt/d/e"])
            .unwrap()
            .ok();
        for line in [
            "user:1001:rwx",
            "group::---",
            "mask::rwx",
            "default:user:1001:rwx",
        ] {
            assert!(
                told.lines().any(|told| told == line),
                "{driver} {line}: {told}"
            );
        }
        sandbox.shell("umask 077; echo > mnt/plain").ok();
        assert!(
            !reads(sandbox, 1002, 1002, "plain"),
            "{driver}: the umask counts elsewhere"
        );
    });
}

#[test]
fn clients_of_every_server_are_held_to_a_list() {
    if !can_mount() {
        return;
    }
    for driver in ["ffs2", "cedar"] {
        let sandbox = Sandbox::empty();
        make(&sandbox, driver);
        let mounting = Mounting::start(&sandbox, &["v.img"]).unwrap();
        sandbox
            .shell("cd mnt && echo secret | tee f > g && chown 1000:1000 f g && chmod 600 f && chmod 644 g")
            .ok();
        let Some(run) = setfacl(&sandbox, "-m u:1001:r,g:1002:r mnt/f") else {
            return;
        };
        run.ok();
        setfacl(&sandbox, "-m u:1001:-,g:1002:r mnt/g")
            .unwrap()
            .ok();
        mounting.end();
        let serving = Serving::start(&sandbox, "v.img");
        for (uid, name, may) in [
            (1001, "f", true),
            (1002, "f", true),
            (1003, "f", false),
            (1001, "g", false),
            (1003, "g", true),
        ] {
            let port = serving.port();
            let words = format!(
                "cat -o port={port},mountport={port},uid={uid},gid={uid} nfs://127.0.0.1/v:/{name}"
            );
            let run = sandbox.run(&words);
            assert_eq!(run.code == 0, may, "{driver} {uid} {name}: {}", run.err);
        }
        serving.stop("-TERM");
        let Some(python) = python::with_smb_clients() else {
            return;
        };
        let serving = serve(&sandbox, "v.img");
        let run = runs(&python, "listed", &serving, driver);
        assert_eq!(run.out, "content\n", "{driver}: {}", run.err);
        serving.stop("-TERM");
    }
}

/// Runs a part of the script as clients of a server of this driver.
fn runs(python: &Path, what: &str, serving: &Serving, driver: &str) -> Run {
    let script = include_str!("acls.py");
    let words = ["-c", script, what, &port(serving), driver];
    Run::of(&Command::new(python).args(words).output().unwrap())
}

#[test]
fn a_list_that_denies_one_user_is_kept_whole_or_refused_with_nothing_changed() {
    let Some(python) = python::with_smb_clients() else {
        return;
    };
    let each = |(driver, volume): (&str, &str)| {
        let sandbox = Sandbox::empty();
        make(&sandbox, driver);
        let mut serving = serve(&sandbox, volume);
        let first = runs(&python, "first", &serving, driver);
        assert_eq!(first.out, "content\n", "{driver}: {}", first.err);
        if driver != "mem" {
            serving.stop("-TERM");
            serving = serve(&sandbox, volume);
        }
        let again = runs(&python, "again", &serving, driver);
        assert_eq!(again.out, "content\n", "{driver}: {}", again.err);
        serving.stop("-TERM");
    };
    thread::scope(|scope| {
        for driver in DRIVERS {
            let each = &each;
            scope.spawn(move || each(driver));
        }
    });
}
