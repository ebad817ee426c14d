//! Searches in a directory with names that differ in case alone.

use crate::served::{Served, config, now};
use std::net::Ipv4Addr;
use volary_core::{Create, Cred, Mode, SetAttr};
use volary_mem::{Mem, MemOptions};
use volary_session::{Volume, VolumeOptions};
use volary_smb::User;
use volary_testkit::smb::{Client, Fail, How, access};

const NO_SUCH_FILE: u32 = 0xC000_000F;

/// Returns a share with files of these names, and a client of it.
fn served(names: &[&str]) -> (Served, Client) {
    let fs = Mem::attach(MemOptions::default(), now()).expect("a volume");
    let volume = Volume::new(fs, VolumeOptions::new("share", now));
    let session = volume.session(Cred::root());
    for name in names {
        let (root, set) = (session.root(), SetAttr::mode(0o644));
        let name = name.as_bytes();
        let made = session.create(root, name, Create::New, Mode::ReadWrite, &set);
        session.close(made.expect("a file").1).expect("closed");
    }
    let mut config = config();
    config.users = vec![User::with_password("tester", "pass", Cred::root())];
    config.shares[0].volume = volume;
    let served = Served::new(config);
    let address = (Ipv4Addr::LOCALHOST, served.port).into();
    let client = Client::connect(address, "tester", "pass", "share", [7; 16]);
    (served, client.expect("a client").0)
}

/// Returns the names that a new search of the root finds.
fn found(client: &Client, pattern: &str) -> Result<Vec<String>, Fail> {
    let how = How {
        options: 1,
        ..How::open(access::READ)
    };
    let root = client.open("", &how).expect("the root").open;
    let found = client.find(root, pattern);
    client.close(root).expect("closed");
    found
}

#[test]
fn a_search_without_wildcards_finds_one_name() {
    let (_served, client) = served(&["README", "readme", "ReadMe", "other"]);
    for name in ["README", "readme", "ReadMe", "other"] {
        assert_eq!(found(&client, name), Ok(vec![name.to_owned()]));
    }
    for name in ["rEADME", "OTHER"] {
        let by_search = found(&client, name).expect("names");
        assert_eq!(by_search.len(), 1, "{by_search:?}");
        assert!(by_search[0].eq_ignore_ascii_case(name), "{by_search:?}");
    }
    assert_eq!(found(&client, "none"), Err(Fail::Status(NO_SUCH_FILE)));
    let mut all = found(&client, "read*").expect("names");
    all.sort();
    assert_eq!(all, ["README", "ReadMe", "readme"]);
}

#[test]
fn a_search_finds_the_name_far_behind_others() {
    let mut names: Vec<String> = (0..300).map(|n| format!("{n}")).collect();
    names.insert(0, "LAST".to_owned());
    names.push("last".to_owned());
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let (_served, client) = served(&names);
    assert_eq!(found(&client, "last"), Ok(vec!["last".to_owned()]));
    assert_eq!(found(&client, "lASt").map(|found| found.len()), Ok(1));
}

#[test]
fn a_search_removes_no_other_file() {
    let (_served, client) = served(&["README", "readme", "ReadMe"]);
    for name in found(&client, "readme").expect("names") {
        let how = How {
            options: 0x1040,
            ..How::open(access::DELETE)
        };
        let open = client.open(&name, &how).expect("an open").open;
        client.close(open).expect("closed");
    }
    let mut left = found(&client, "*").expect("names");
    left.retain(|name| !name.starts_with('.'));
    left.sort();
    assert_eq!(left, ["README", "ReadMe"]);
}
