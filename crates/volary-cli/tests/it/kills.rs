//! Processes that work on a volume and are killed: `volary torture kill`.
//! `VOLARY_ROUNDS` says how often.

use crate::sandbox::Sandbox;

fn kill(name: &str, how: &[&str]) {
    let rounds = std::env::var("VOLARY_ROUNDS").unwrap_or_else(|_| "10".into());
    let sandbox = Sandbox::empty();
    let dir = sandbox.path(".");
    let mut words = vec!["torture", "kill", name, "--rounds", &rounds];
    words.extend(["--steps", "200", "--dir", dir.to_str().unwrap()]);
    words.extend(how);
    let said = sandbox.run_words(&words).ok();
    let kills = format!("{name}: {rounds} kills, ");
    assert!(said.starts_with(&kills), "{said}");
}

#[test]
fn nothing_acknowledged_is_lost_on_cedar() {
    kill("cedar", &[]);
}

#[test]
fn nothing_acknowledged_is_lost_on_fat() {
    kill("fat32", &[]);
}

#[test]
fn nothing_acknowledged_is_lost_on_ffs() {
    kill("ffs2", &[]);
}

#[test]
fn nothing_acknowledged_is_lost_behind_a_mount() {
    for name in ["cedar", "fat32", "ffs2"] {
        kill(name, &["--mounted"]);
    }
}
