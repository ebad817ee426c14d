//! What is told: that it serves, and how to mount.

use super::Served;
use crate::exit::Done;
use crate::out::{end, out};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;

#[derive(Serialize)]
struct Serving {
    status: &'static str,
    nfs: SocketAddr,
    volumes: Vec<Exported>,
}

#[derive(Serialize)]
struct Exported {
    volume: String,
    export: String,
    read_only: bool,
}

#[derive(Serialize)]
struct Stopped {
    status: &'static str,
}

/// One line of JSON.
pub(super) fn serving_json(at: SocketAddr, open: &[Served]) -> Done {
    let volumes = open.iter().map(|served| Exported {
        volume: served.source.to_string(),
        export: format!("/{}", served.export.name),
        read_only: served.export.read_only,
    });
    line(&Serving {
        status: "serving",
        nfs: at,
        volumes: volumes.collect(),
    })
}

/// The last line of JSON.
pub(super) fn stopped() -> Done {
    line(&Stopped { status: "stopped" })
}

fn line(value: &impl Serialize) -> Done {
    let mut out = out();
    serde_json::to_writer(&mut out, value).map_err(std::io::Error::from)?;
    out.write_all(b"\n")?;
    end(out)
}

/// What is served, and how to mount it.
pub(super) fn serving(at: SocketAddr, portmap: bool, open: &[Served]) -> Done {
    let mut out = out();
    out.write_all(words(at, portmap, open).as_bytes())?;
    end(out)
}

fn words(at: SocketAddr, portmap: bool, open: &[Served]) -> String {
    let mut text = String::new();
    for served in open {
        let how = if served.export.read_only {
            ", for reading only"
        } else {
            ""
        };
        let name = volary::escape(served.export.name.as_bytes());
        // Writing to a string does not fail.
        let _ = writeln!(text, "{} is /{name}{how}", served.source);
    }
    let first = open.first().map_or("", |served| &served.export.name);
    let name = volary::escape(first.as_bytes());
    let (host, port) = (host(at), at.port());
    let windows = if portmap {
        format!("mount -o anon,nolock {host}:/{name} Z:")
    } else {
        "its NFS client asks a portmapper: serve with --portmap, as root".into()
    };
    let _ = write!(
        text,
        "\
Serving NFS on {at}; Ctrl-C ends. To mount /{name}:
  Linux    mount -t nfs -o vers=3,proto=tcp,nolock,port={port},mountport={port},mountproto=tcp {host}:/{name} DIR
  macOS    mount_nfs -o vers=3,tcp,nolocks,port={port},mountport={port} {host}:/{name} DIR
  Windows  {windows}
  libnfs   nfs-ls 'nfs://{host}/{name}?version=3&nfsport={port}&mountport={port}'
"
    );
    text
}

/// The address as a client writes it; for all addresses, this host's.
fn host(at: SocketAddr) -> String {
    match at {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => "ADDRESS".into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => "ADDRESS".into(),
        SocketAddr::V4(v4) => v4.ip().to_string(),
        SocketAddr::V6(v6) => format!("[{}]", v6.ip()),
    }
}
