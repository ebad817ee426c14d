//! Another server's files as a volume: `driver-name:HOST:PORT`. Adapt [`Client`]: what it asks, and
//! how the answers look.
//!
//! The protocol of this template, over TCP, a connection for each request: `LIST path` is answered
//! by lines `SIZE NAME`, or `DIR NAME`; `READ path offset length` by the bytes. The path is the
//! rest of the line. The server closes at the end.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use volary::{Attach, Error, Fs, Kind, Needs, Result, Scheme, Time};
use volary_driver::readonly::{self, Entries, Item, Lazy};

/// Returns the scheme: `Registry::default().with(scheme())`.
pub fn scheme() -> Scheme {
    let needs = |_: &[u8]| Needs {
        network: true,
        ..Needs::default()
    };
    Scheme::new("driver-name", open)
        .help("HOST:PORT", "the files of a server")
        .needs(needs)
}

fn open(server: &[u8], how: &Attach, _: Time) -> Result<Fs> {
    let client = Client(String::from_utf8_lossy(server).into_owned());
    // A server that does not answer is told at once.
    client.list(b"")?;
    Ok(readonly::attach_lazy("driver-name", client, how))
}

/// Asks a server.
struct Client(String);

/// How long an answer is waited for.
const WAIT: Duration = Duration::from_secs(30);
/// The longest listing that is believed, in bytes.
const LISTING_MAX: u64 = 16 << 20;

impl Client {
    fn ask(&self, request: &str, most: u64) -> Result<Vec<u8>> {
        let asked = || {
            let mut socket = TcpStream::connect(&self.0)?;
            socket.set_read_timeout(Some(WAIT))?;
            socket.set_write_timeout(Some(WAIT))?;
            socket.write_all(request.as_bytes())?;
            let mut answer = Vec::new();
            socket.take(most).read_to_end(&mut answer)?;
            std::io::Result::Ok(answer)
        };
        asked().map_err(|e| Error::note(Kind::Io, format!("{}: {e}", self.0)))
    }

    /// Returns a path as a request can hold it.
    fn path(path: &[u8]) -> Result<&str> {
        let text = std::str::from_utf8(path)
            .ok()
            .filter(|path| !path.contains('\n'));
        text.ok_or_else(|| Kind::NotFound.into())
    }
}

impl Lazy for Client {
    /// The path.
    type File = String;

    fn list(&self, dir: &[u8]) -> Result<Entries<String>> {
        let dir = Self::path(dir)?;
        let answer = self.ask(&format!("LIST {dir}\n"), LISTING_MAX)?;
        let slash = if dir.is_empty() { "" } else { "/" };
        let mut found = Vec::new();
        for line in String::from_utf8_lossy(&answer).lines() {
            let (what, name) = line.split_once(' ').unwrap_or_default();
            let item = match what.parse() {
                Ok(size) => Item::file(size, format!("{dir}{slash}{name}")),
                Err(_) if what == "DIR" => Item::dir(),
                Err(_) => {
                    return Err(Error::note(
                        Kind::Io,
                        format!(
                            "{}: it answers '{}'",
                            self.0,
                            volary::escape_short(line.as_bytes())
                        ),
                    ));
                }
            };
            found.push((name.into(), item));
        }
        Ok(found)
    }

    fn read(&self, path: &String, offset: u64, buf: &mut [u8]) -> Result<()> {
        let answer = self.ask(
            &format!("READ {offset} {} {path}\n", buf.len()),
            buf.len() as u64,
        )?;
        match answer.len() == buf.len() {
            true => buf.copy_from_slice(&answer),
            // The file became shorter since it was listed.
            false => return Err(Kind::Stale.into()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;
    use volary::{Cred, Follow, Mode, Registry, Volume, VolumeOptions};

    /// A server with the file `dir/file`.
    fn serve() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let mut socket = socket.unwrap();
                let mut line = String::new();
                BufReader::new(&socket).read_line(&mut line).unwrap();
                let words: Vec<&str> = line.split_whitespace().collect();
                let answer = match words[..] {
                    ["LIST"] => "DIR dir\n",
                    ["LIST", "dir"] => "9 file\n",
                    ["READ", offset, _, "dir/file"] => &"some text"[offset.parse().unwrap()..],
                    _ => "",
                };
                socket.write_all(answer.as_bytes()).unwrap();
            }
        });
        address
    }

    #[test]
    fn a_file_of_the_server_is_read() {
        let registry = Registry::default().with(scheme());
        let open = |server: &str| {
            let source = registry
                .source(format!("driver-name:{server}").as_bytes())
                .unwrap();
            registry.open_volume(&source, &Attach::default(), Time::EPOCH)
        };
        let volume = Volume::new(
            open(&serve()).unwrap().fs,
            VolumeOptions::new("test", || Time::EPOCH),
        );
        let session = volume.session(Cred::root());
        let entry = session.walk(b"/dir/file", Follow::Yes).unwrap();
        let file = session.open(entry.node, Mode::Read).unwrap();
        let mut buf = [0; 99];
        assert_eq!(session.read(file, 5, &mut buf).unwrap(), 4);
        assert_eq!(&buf[..4], b"text");
        session.close(file).unwrap();
        assert_eq!(open("127.0.0.1:1").err().unwrap(), Kind::Io);
    }
}
