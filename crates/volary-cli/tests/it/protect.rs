//! `serve --protect`: what messages of SMB must be.

use crate::sandbox::Sandbox;
use crate::serving::{Serving, client};
use std::io::{Read, Write};
use std::net::TcpStream;

/// Who offers 2.1 alone: a dialect without encryption.
const OLD: &str = "SMB2_10";

fn serve(sandbox: &Sandbox, more: &[&str]) -> (Serving, String) {
    let words = [
        "serve",
        "--json",
        "--smb",
        "127.0.0.1:0",
        "--user",
        "tester",
    ];
    let mut command = sandbox.command(&[&words, more].concat());
    command.env("VOLARY_PASSWORD", "pass");
    let serving = Serving::of(command);
    let address = serving.said["smb"].as_str().unwrap().to_owned();
    (serving, address)
}

/// Returns whether Samba's client can look at a share, by no newer dialect than `newest`, or
/// is refused; `None` where there is no such client.
fn looks(sandbox: &Sandbox, address: &str, share: &str, newest: &str) -> Option<bool> {
    let port = address.rsplit(':').next().unwrap();
    let (user, share) = ("tester%pass", format!("//127.0.0.1/{share}"));
    let words = ["-p", port, "-U", user, "-m", newest, &share, "-c", "ls"];
    client(sandbox, "smbclient", &words).map(|run| {
        let is_refused = run.out.contains("NT_STATUS_ACCESS_DENIED");
        assert_eq!(run.code != 0, is_refused, "{} {}", run.out, run.err);
        !is_refused
    })
}

/// `SecurityMode` of the answer to a NEGOTIATE of 2.1 (MS-SMB2 2.2.3, 2.2.4).
fn security_mode(address: &str) -> u8 {
    let mut message = b"\xFESMB\x40\0".to_vec();
    message.resize(64, 0);
    // One dialect; the client can sign.
    message.extend([36, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    message.extend([7; 16]);
    message.extend([0; 8]);
    message.extend([0x10, 0x02]);
    let mut socket = TcpStream::connect(address).unwrap();
    let len = u32::try_from(message.len()).unwrap();
    socket.write_all(&len.to_be_bytes()).unwrap();
    socket.write_all(&message).unwrap();
    let mut answer = [0; 4 + 64 + 4];
    socket.read_exact(&mut answer).unwrap();
    answer[4 + 64 + 2]
}

#[test]
fn signatures_are_asked_for_unless_nothing_is() {
    for (protect, mode) in [("signed", 3), ("none", 1)] {
        let sandbox = Sandbox::new();
        let (serving, address) = serve(&sandbox, &["--protect", protect, "unix.img"]);
        assert_eq!(security_mode(&address), mode, "{protect}");
        for newest in [OLD, "SMB3_11"] {
            let looked = looks(&sandbox, &address, "unix", newest);
            assert_ne!(looked, Some(false), "{protect} {newest}");
        }
        serving.stop("-TERM");
    }
}

#[test]
fn who_cannot_encrypt_is_refused_where_that_is_asked_for() {
    let sandbox = Sandbox::new();
    let (serving, address) = serve(&sandbox, &["--protect", "encrypted", "unix.img"]);
    assert_ne!(looks(&sandbox, &address, "unix", OLD), Some(true));
    assert_ne!(looks(&sandbox, &address, "unix", "SMB3_11"), Some(false));
    serving.stop("-TERM");
}

#[test]
fn one_volume_of_several_may_be_for_encrypted_messages_alone() {
    let sandbox = Sandbox::new();
    let text = "protect = \"none\"\n[[volume]]\nvolume = \"unix.img\"\nencrypt = true\n\
                [[volume]]\nvolume = \"disk.img\"\n";
    sandbox.write("volary.toml", text.as_bytes());
    let (serving, address) = serve(&sandbox, &["--config", "volary.toml"]);
    assert_eq!(security_mode(&address), 1);
    assert_ne!(looks(&sandbox, &address, "unix", OLD), Some(true));
    assert_ne!(looks(&sandbox, &address, "unix", "SMB3_11"), Some(false));
    assert_ne!(looks(&sandbox, &address, "disk", OLD), Some(false));
    serving.stop("-TERM");
}
