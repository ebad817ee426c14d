//! Serves an empty in-memory volume by SMB, for tests and for a first look:
//!
//!     cargo run -p volary-smb --example serve -- tester pass 14451
//!
//! as the shares `share`, `crypt` (encrypted) and `fixed` (read-only), on
//! 127.0.0.1, until its standard input ends. Words after the port:
//! `plain` (signing is not required), `encrypt` (encryption is), `202`, `210`,
//! `300`, `302`, `311` (the only dialect), `nodelay` (wrong passwords cost no
//! time), `case` (upper and lower case differ).

use std::io::Read;
use std::net::TcpListener;
use std::time::{Duration, SystemTime};
use std::{env, io, process, thread};
use volary_core::{Caps, Cred, Time};
use volary_mem::{Mem, MemOptions};
use volary_session::{Volume, VolumeOptions};
use volary_smb::{Config, Dialect, Server, Share, User};

const UID: u32 = 1000;

fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    let [user, password, port, words @ ..] = &args[..] else {
        eprintln!("usage: serve USER PASSWORD PORT [WORD]...");
        process::exit(2);
    };
    let mut config = Config::new("VOLARY", now);
    for word in words {
        apply(&mut config, word);
    }
    let cred = Cred::new(UID, UID);
    config.users = vec![User::with_password(user, password, cred)];
    config.shares = shares(words.iter().any(|word| word == "case"));
    let server = Server::new(config).expect("a server");
    let port: u16 = port.parse().expect("a port");
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
    println!("{}", listener.local_addr().expect("an address").port());
    let stopped = server.clone();
    thread::spawn(move || {
        // An error is an end as well.
        let _ = io::stdin().read_to_end(&mut Vec::new());
        stopped.stop();
    });
    server.serve(&listener).expect("serving");
}

fn apply(config: &mut Config, word: &str) {
    match word {
        "plain" => config.signing_required = false,
        "encrypt" => config.encryption_required = true,
        "nodelay" => config.limits.failed_logon_delay = Duration::ZERO,
        "case" => {}
        _ => {
            let code = u16::from_str_radix(word, 16).ok();
            let known = Dialect::ALL.into_iter().find(|d| Some(d.code()) == code);
            let Some(dialect) = known else {
                eprintln!("serve: no such word: {word}");
                process::exit(2);
            };
            (config.min_dialect, config.max_dialect) = (dialect, dialect);
        }
    }
}

fn shares(case_sensitive: bool) -> Vec<Share> {
    let volume = |name: &str| {
        let mut options = MemOptions {
            uid: UID,
            gid: UID,
            ..MemOptions::default()
        };
        if !case_sensitive {
            options.caps = options.caps.without(Caps::CASE_SENSITIVE);
        }
        let fs = Mem::attach(options, now()).expect("a volume in memory");
        Volume::new(fs, VolumeOptions::new(name, now))
    };
    let share = |name: &str, read_only, encrypt| Share {
        read_only,
        encrypt,
        ..Share::new(name, volume(name))
    };
    vec![
        share("share", false, false),
        share("crypt", false, true),
        share("fixed", true, false),
    ]
}

#[expect(clippy::disallowed_methods, reason = "where time comes in")]
fn now() -> Time {
    SystemTime::now().into()
}
