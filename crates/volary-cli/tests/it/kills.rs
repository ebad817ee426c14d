//! Processes that work on a volume and are killed: `volary torture kill`.
//! `VOLARY_ROUNDS` says how often.

use crate::sandbox::Sandbox;

fn kill(name: &str, how: &[&str]) {
    kill_in_rounds(name, "10", how);
}

fn kill_in_rounds(name: &str, rounds: &str, how: &[&str]) {
    let rounds = std::env::var("VOLARY_ROUNDS").unwrap_or_else(|_| rounds.into());
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

/// How long the image of a served volume is looked at until it holds what was acknowledged:
/// far longer than the commit time, for a busy host.
const PATIENCE: &str = "60";

fn kill_served(by: &str) {
    for name in ["cedar", "fat32", "ffs2"] {
        kill_in_rounds(name, "4", &["--served", by, "--patience", PATIENCE]);
    }
}

#[test]
fn nothing_that_clients_of_nfs_were_answered_is_lost() {
    kill_served("nfs");
}

#[test]
fn nothing_that_clients_of_smb_were_answered_a_commit_time_ago_is_lost() {
    kill_served("smb");
}
