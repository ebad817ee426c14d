//! A volume, and short words for what the tests do with it.

use std::net::SocketAddr;
use volary_core::{
    Cancel, Create, Cred, Ctx, Fs, Mode, Name, NodeId, OpenId, Result, SetAttr, Time,
};
use volary_nfs_client::{Location, NfsOptions};

static NEVER: Cancel = Cancel::new();
static ROOT: std::sync::LazyLock<Cred> = std::sync::LazyLock::new(Cred::root);

pub(crate) struct Side(pub(crate) Fs);

/// Returns the export `/test` at an address.
pub(crate) fn export_at(address: SocketAddr, options: &NfsOptions) -> Result<Fs> {
    let location = Location::parse(format!("{address}/test").as_bytes())?;
    volary_nfs_client::attach(&location, options)
}

pub(crate) fn cx(cred: &Cred) -> Ctx<'_> {
    Ctx {
        cred,
        now: Time::EPOCH,
        cancel: &NEVER,
    }
}

impl Side {
    pub(crate) fn cx(&self) -> Ctx<'_> {
        cx(&ROOT)
    }

    pub(crate) fn find(&self, name: &str) -> NodeId {
        let name = Name::new(name.as_bytes()).expect("a name");
        let found = self.0.lookup(&self.cx(), self.0.root(), name);
        found.expect("the name").node
    }

    pub(crate) fn create(&self, name: &str) -> OpenId {
        let name = Name::new(name.as_bytes()).expect("a name");
        let (cx, root, set) = (self.cx(), self.0.root(), SetAttr::mode(0o644));
        let made = self.0.create(&cx, root, name, Create::Truncate, &set);
        made.expect("create").1
    }

    pub(crate) fn content(&self, name: &str) -> Vec<u8> {
        let node = self.find(name);
        let open = self.0.open(&self.cx(), node, Mode::Read).expect("open");
        let mut all = Vec::new();
        let mut room = vec![0; 100_000];
        loop {
            let at = all.len() as u64;
            let got = self.0.read(&self.cx(), open, at, &mut room).expect("read");
            all.extend_from_slice(&room[..got]);
            if got < room.len() {
                self.0.close(&self.cx(), open).expect("close");
                return all;
            }
        }
    }
}
