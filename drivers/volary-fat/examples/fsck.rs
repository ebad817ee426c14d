//! `fsck [-n|-p|-y] [-o OPTIONS] IMAGE`: the check alone, for measurements.

use std::process::ExitCode;
use std::sync::Arc;
use volary_block::{FileDevice, OpenOptions};
use volary_core::{Answer, Check, CheckMode, Options, Quiet, Time, escape};

fn main() -> ExitCode {
    let mut mode = CheckMode::Look;
    let mut options = Options::new();
    let mut image = None;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "-n" => mode = CheckMode::Look,
            "-p" => mode = CheckMode::Preen,
            "-y" => mode = CheckMode::Mend,
            "-o" => options.add(&args.next().unwrap_or_default()),
            _ => image = Some(arg),
        }
    }
    let Some(image) = image else {
        eprintln!("usage: fsck [-n|-p|-y] [-o OPTIONS] IMAGE");
        return ExitCode::from(8);
    };
    let open = OpenOptions {
        read_only: mode == CheckMode::Look,
        ..OpenOptions::default()
    };
    let how = Check {
        mode,
        now: Time::from_secs(1_000_000_000),
        options,
    };
    let mut tell = |f: &volary_core::Finding| {
        let path = f.path.as_deref().map(|p| escape(p).to_string());
        let path = path.unwrap_or_default();
        println!("{}: {path}: {} [{}]", f.code, f.message, f.repair);
        Answer::Yes
    };
    let checked = FileDevice::open(std::path::Path::new(&image), open)
        .and_then(|dev| volary_fat::check::run(Arc::new(dev), &how, &mut tell, &Quiet));
    match checked {
        Ok(report) => {
            for fact in &report.facts {
                println!("{}: {}", fact.key, fact.value);
            }
            println!(
                "found {}, mended {}, wrote {} sectors",
                report.found, report.mended, report.written
            );
            ExitCode::from(if report.left() > 0 {
                4
            } else {
                u8::from(report.mended > 0)
            })
        }
        Err(e) => {
            eprintln!("{image}: {e}");
            ExitCode::from(8)
        }
    }
}
