//! A Cedar volume as a cache of an NFS export: the paper's workstation, which works on while
//! the file server is away.

mod servers;

use servers::clock;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use volary::mem::{Mem, MemOptions};
use volary::nfs::{ExportOptions, ServeOptions, Server, Squash};
use volary::{
    Attach, Cancel, Create, Cred, Ctx, Error, Fs, Kind, Make, Mode, Name, Options, Result, SetAttr,
    Source, Time, Volume, VolumeOptions,
};
use volary_testkit::tree::Tree;

fn serve(volume: &Arc<Volume>, address: SocketAddr) -> Server {
    let export = ExportOptions {
        squash: Squash::None,
        ..ExportOptions::new("home")
    };
    let options = ServeOptions::new(address, [7; 16], 1);
    volary::nfs::serve(vec![(Arc::clone(volume), export)], &options).unwrap()
}

/// Does something as root, so many seconds on.
fn later<T>(secs: i64, act: impl FnOnce(&Ctx<'_>) -> T) -> T {
    let (cred, cancel) = (Cred::root(), Cancel::new());
    act(&Ctx {
        cred: &cred,
        now: Time::from_secs(1_700_000_000 + secs),
        cancel: &cancel,
    })
}

fn put(fs: &Fs, name: &str, content: &[u8]) {
    later(0, |cx| {
        let set = SetAttr::default();
        let name = Name::new(name.as_bytes()).unwrap();
        let (_, open) = fs
            .create(cx, fs.root(), name, Create::Truncate, &set)
            .unwrap();
        fs.write(cx, open, Some(0), content).unwrap();
        fs.close(cx, open).unwrap();
    });
}

fn get(fs: &Fs, secs: i64, name: &str) -> Result<Vec<u8>> {
    later(secs, |cx| {
        let found = fs.lookup(cx, fs.root(), Name::new(name.as_bytes())?)?;
        let open = fs.open(cx, found.node, Mode::Read)?;
        let mut content = vec![0; 3_000_000];
        let read = fs.read(cx, open, 0, &mut content);
        fs.close(cx, open)?;
        content.truncate(read?);
        Ok(content)
    })
}

/// Makes a volume on an image that is a cache of `remote`, or opens it.
fn cache(image: &Path, remote: Option<&str>, make: bool) -> Result<Fs> {
    let source = Source::parse(image.to_str().unwrap().as_bytes())?;
    let mut options = Options::new();
    if let Some(remote) = remote {
        options.set("remote", remote);
    }
    if let Some(remote) = remote.filter(|_| make) {
        let how = Make {
            options: Options::parse(&format!("cache={remote}")),
            ..Make::default()
        };
        let dev = volary::open_source(&source, false, clock())?;
        volary::format_of("cedar")?.make(dev, "cedar", &how)?;
    }
    let how = Attach {
        options,
        ..Attach::default()
    };
    volary::open_volume(&source, &how, clock()).map(|opened| opened.fs)
}

#[expect(clippy::needless_pass_by_value, reason = "the image is free then")]
fn end(fs: Fs) {
    later(0, |cx| fs.detach(cx)).unwrap();
}

#[test]
fn a_workstation_works_on_while_its_file_server_is_away() {
    let mem = Mem::attach(MemOptions::sized(64 << 20), clock()).unwrap();
    let volume = Volume::new(mem.clone(), VolumeOptions::new("home", clock));
    let large: Vec<u8> = (0..2_500_000_u32).map(|i| (i / 300) as u8).collect();
    put(&mem, "large", &large);
    put(&mem, "small", b"small");
    put(&mem, "other", b"never opened");
    let server = serve(&volume, SocketAddr::from(([127, 0, 0, 1], 0)));
    let address = server.addresses()[0];
    let remote = format!("nfs://{address}/home?timeout=1");
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("cache.img");
    std::fs::File::create(&image)
        .unwrap()
        .set_len(16 << 20)
        .unwrap();

    let fs = cache(&image, Some(&remote), true).unwrap();
    assert!(get(&fs, 0, "large").unwrap() == large);
    assert_eq!(get(&fs, 0, "small").unwrap(), b"small");
    get(&fs, 0, "none").unwrap_err();
    put(&mem, "small", b"changed");
    assert_eq!(get(&fs, 1, "small").unwrap(), b"changed");
    later(1, |cx| {
        fs.lookup(cx, fs.root(), Name::new(b"other").unwrap())
    })
    .unwrap();

    drop(server);
    assert!(get(&fs, 2, "large").unwrap() == large);
    let away = |e: Error| assert_eq!(e, Kind::Io, "{e}");
    away(get(&fs, 2, "other").unwrap_err());
    end(fs);

    // Started while the server is away, and without it.
    for remote in [Some(remote.as_str()), None] {
        let fs = cache(&image, remote, false).unwrap();
        assert!(get(&fs, 3, "large").unwrap() == large);
        assert_eq!(get(&fs, 3, "small").unwrap(), b"changed");
        away(get(&fs, 3, "other").unwrap_err());
        end(fs);
    }

    let fs = cache(&image, Some(&remote), false).unwrap();
    away(get(&fs, 4, "other").unwrap_err());
    let server = serve(&volume, address);
    assert_eq!(get(&fs, 10, "other").unwrap(), b"never opened");
    let (here, there) = later(11, |cx| (Tree::read(&fs, cx), Tree::read(&mem, cx)));
    assert_eq!(here.unwrap(), there.unwrap());
    end(fs);
    drop(server);
}
