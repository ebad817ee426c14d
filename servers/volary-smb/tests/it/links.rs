//! Links that replace a file.

use crate::served::{Served, config, now};
use std::net::Ipv4Addr;
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{Attach, Cred, Format, Fs, Make};
use volary_fat::FAT;
use volary_session::{Volume, VolumeOptions};
use volary_smb::User;
use volary_testkit::smb::{Client, Fail, How, Open, access, disposition};

/// Returns the server's share, or `fs` in its place, and a client of it.
fn served(fs: Option<Fs>) -> (Served, Client) {
    let mut config = config();
    config.users = vec![User::with_password("tester", "pass", Cred::root())];
    if let Some(fs) = fs {
        config.shares[0].volume = Volume::new(fs, VolumeOptions::new("share", now));
    }
    let served = Served::new(config);
    let address = (Ipv4Addr::LOCALHOST, served.port).into();
    let client = Client::connect(address, "tester", "pass", "share", [7; 16]);
    (served, client.expect("a client").0)
}

/// FAT, which has no links.
fn fat() -> Fs {
    let dev = Arc::new(MemDevice::new(8 << 20));
    let make = Make {
        now: now(),
        ..Make::default()
    };
    FAT.make(dev.clone(), "fat16", &make).expect("a volume");
    FAT.attach(dev, &Attach::default()).expect("a volume")
}

fn file(client: &Client, name: &str) -> Open {
    let how = How {
        disposition: disposition::CREATE,
        ..How::open(access::READ | access::WRITE | access::DELETE)
    };
    let open = client.open(name, &how).expect("a file").open;
    client.write(open, 0, name.as_bytes()).expect("written");
    open
}

/// Links `new` over `old`. Returns the result, what `old` holds then, and all names.
fn link_over(client: &Client) -> (Result<(), Fail>, Vec<u8>, Vec<String>) {
    let (old, new) = (file(client, "old"), file(client, "new"));
    client.close(old).expect("closed");
    let linked = client.link_over(new, "old");
    let old = client.open("old", &How::open(access::READ));
    let held = client.read(old.expect("an open").open, 0, 10);
    let mut names = client.list("").expect("names");
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    (linked, held.expect("content"), names)
}

#[test]
fn a_link_takes_the_place_of_a_file() {
    let (_served, client) = served(None);
    let (linked, held, names) = link_over(&client);
    assert_eq!((linked, &held[..]), (Ok(()), &b"new"[..]));
    assert_eq!(names, ["new", "old"]);
}

#[test]
fn a_file_stays_where_no_link_can_take_its_place() {
    let (_served, client) = served(Some(fat()));
    let (linked, held, names) = link_over(&client);
    assert!(linked.is_err());
    assert_eq!(held, b"old");
    assert_eq!(names, ["new", "old"]);
}
