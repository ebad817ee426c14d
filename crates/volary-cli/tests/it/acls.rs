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
            assert!(is_refused, "{driver} {words}: {} {}", run.code, run.err);
        }
        // Taking away what is not there is no failure.
        assert_eq!(setfacl(sandbox, "-b mnt/f").unwrap().code, 0, "{driver}");
    });
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
