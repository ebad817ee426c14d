//! What is told: that it serves, and how to mount.

use super::plan::Served;
use crate::exit::Done;
use crate::out::{end, out};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;

/// Where what is served.
pub(super) struct At<'a> {
    pub(super) nfs: Option<SocketAddr>,
    pub(super) portmap: bool,
    pub(super) smb: Option<SocketAddr>,
    /// One who may log on.
    pub(super) user: &'a str,
    /// A user who may log on and has uid 0.
    pub(super) root: Option<&'a str>,
    /// The user of `--run-as`, if one was given.
    pub(super) run_as: Option<&'a str>,
}

#[derive(Serialize)]
struct Serving {
    status: &'static str,
    nfs: Option<SocketAddr>,
    smb: Option<SocketAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_as: Option<String>,
    volumes: Vec<Exported>,
}

#[derive(Serialize)]
struct Exported {
    volume: String,
    export: String,
    read_only: bool,
    mount: Option<String>,
}

#[derive(Serialize)]
struct Stopped {
    status: &'static str,
}

/// One line of JSON.
pub(super) fn serving_json(at: &At<'_>, open: &[Served]) -> Done {
    let volumes = open.iter().map(|served| Exported {
        volume: served.source.to_string(),
        export: format!("/{}", served.export.name),
        read_only: served.export.read_only,
        mount: served.mount.as_ref().map(|dir| dir.display().to_string()),
    });
    line(&Serving {
        status: "serving",
        nfs: at.nfs,
        smb: at.smb,
        run_as: at.run_as.map(Into::into),
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
pub(super) fn serving(at: &At<'_>, open: &[Served]) -> Done {
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
        if let Some(dir) = &served.mount {
            let dir = volary::escape(dir.as_os_str().as_bytes());
            let _ = writeln!(text, "  mounted on {dir}");
        }
    }
    let names = open
        .iter()
        .map(|served| volary::escape(served.export.name.as_bytes()).to_string());
    let names: Vec<String> = names.collect();
    if let Some(nfs) = at.nfs {
        let _ = writeln!(text, "Serving NFS on {nfs}; Ctrl-C ends.");
        names
            .iter()
            .for_each(|name| text += &how_by_nfs(nfs, at.portmap, name));
    }
    if let Some(smb) = at.smb {
        let user = volary::escape(at.user.as_bytes()).to_string();
        let _ = writeln!(text, "Serving SMB on {smb}; Ctrl-C ends.");
        names
            .iter()
            .for_each(|name| text += &how_by_smb(smb, &user, name));
        if let Some(root) = at.root {
            let root = volary::escape(root.as_bytes());
            let _ = writeln!(
                text,
                "{root}, who runs this, is root (uid 0) on each share."
            );
        }
    }
    if let Some(name) = at.run_as {
        let name = volary::escape(name.as_bytes());
        let _ = writeln!(text, "Runs as {name} from now on.");
    }
    let mut out = out();
    out.write_all(text.as_bytes())?;
    end(out)
}

fn how_by_nfs(at: SocketAddr, portmap: bool, name: &str) -> String {
    let (host, port) = (host(at), at.port());
    let windows = if portmap {
        format!("mount -o anon,nolock {host}:/{name} Z:")
    } else {
        "its NFS client asks a portmapper: serve with --portmap, as root".into()
    };
    format!(
        "\
To mount /{name} by NFS:
  Linux    mount -t nfs -o vers=3,proto=tcp,nolock,port={port},mountport={port},mountproto=tcp {host}:/{name} DIR
  macOS    mount_nfs -o vers=3,tcp,nolocks,port={port},mountport={port} {host}:/{name} DIR
  Windows  {windows}
  libnfs   nfs-ls 'nfs://{host}/{name}?version=3&nfsport={port}&mountport={port}'
"
    )
}

fn how_by_smb(at: SocketAddr, user: &str, name: &str) -> String {
    let (host, port) = (host(at), at.port());
    format!(
        "\
To mount {name} by SMB:
  Linux    mount -t cifs -o port={port},username={user},vers=3.1.1 //{host}/{name} DIR
  macOS    mount_smbfs //{user}@{host}:{port}/{name} DIR
  Windows  net use Z: \\\\{host}\\{name} /user:{user} /tcpport:{port}
  Samba    smbclient -p {port} -U {user} //{host}/{name}
"
    )
}

/// Returns the address as a client writes it; for all addresses, this host's.
fn host(at: SocketAddr) -> String {
    match at {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => "ADDRESS".into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => "ADDRESS".into(),
        SocketAddr::V4(v4) => v4.ip().to_string(),
        SocketAddr::V6(v6) => format!("[{}]", v6.ip()),
    }
}
