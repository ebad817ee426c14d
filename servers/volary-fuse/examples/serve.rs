//! Mounts an empty volume that lives in memory, until SIGINT or an unmount:
//! `cargo run -p volary-fuse --example serve -- /mnt -o allow_other,suid`.
//! At the end it prints how many requests of each kind there were.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::SystemTime;
use volary_core::{Options, Result, Time};
use volary_fuse::{MountOptions, Stop, serve};
use volary_mem::{Mem, MemOptions};
use volary_session::{Volume, VolumeOptions};

#[expect(clippy::disallowed_methods, reason = "a program's own clock")]
fn clock() -> Time {
    SystemTime::now().into()
}

fn run(place: &PathBuf, options: &str) -> Result<()> {
    let mut options = Options::parse(options);
    let mount = MountOptions::from_options(&mut options)?;
    options.check_known(MountOptions::SPECS)?;
    let how = VolumeOptions {
        name: "mem".into(),
        clock,
        trust: true,
    };
    let volume = Volume::new(Mem::attach(MemOptions::sized(1 << 30), clock())?, how);
    let mounted = serve(volume, place, &mount, Stop::Signals)?;
    println!("{} is mounted", mounted.path().display());
    mounted.wait()?;
    for (kind, count) in mounted.counts().seen() {
        println!("{:>9} {}", count, kind.name());
    }
    Ok(())
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.as_slice() {
        [place] => run(&place.into(), ""),
        [place, flag, options] if flag == "-o" => run(&place.into(), options),
        _ => {
            eprintln!("usage: serve DIR [-o OPTIONS]");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("serve: {e}");
            ExitCode::FAILURE
        }
    }
}
