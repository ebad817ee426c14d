//! What is told: that it serves, and how to mount.

use super::Served;
use crate::exit::Done;
use crate::out::Out;
use serde::Serialize;
use std::io::Write;
use std::net::SocketAddr;

#[derive(Serialize)]
struct Serving<'a> {
    status: &'static str,
    nfs: SocketAddr,
    volumes: Vec<Exported<'a>>,
}

#[derive(Serialize)]
struct Exported<'a> {
    volume: String,
    export: String,
    read_only: bool,
    #[serde(skip)]
    _of: std::marker::PhantomData<&'a ()>,
}

#[derive(Serialize)]
struct Stopped {
    status: &'static str,
}

/// One line of JSON.
pub(super) fn serving_json(at: SocketAddr, open: &[Served]) -> Done {
    let volumes = open
        .iter()
        .map(|served| Exported {
            volume: served.source.to_string(),
            export: format!("/{}", served.export.name),
            read_only: served.export.read_only,
            _of: std::marker::PhantomData,
        })
        .collect();
    line(&Serving {
        status: "serving",
        nfs: at,
        volumes,
    })
}

/// The last line of JSON.
pub(super) fn stopped() -> Done {
    line(&Stopped { status: "stopped" })
}
