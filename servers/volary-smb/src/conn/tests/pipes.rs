//! The limit on the pipes of one user, however many trees the user has.

use super::client::{Client, Heard};
use super::*;
use crate::wire::header::HEADER_LEN;
use crate::wire::{Command, Out, Status};

const UUIDS: [u8; 40] =
    *b"\xc8\x4f\x32\x4b\x70\x16\xd3\x01\x12\x78\x5a\x47\xbf\x6e\xe1\x88\x03\0\0\0\
\x04\x5d\x88\x8a\xeb\x1c\xc9\x11\x9f\xe8\x08\x00\x2b\x10\x48\x60\x02\0\0\0";

fn open_pipe(client: &mut Client) -> Heard {
    let name: Vec<u8> = "srvsvc".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let mut out = Out::new();
    out.u16(57).u8(0).u8(0).u32(2).zeros(16);
    out.u32(0x0012_019F).u32(0).u32(7).u32(1).u32(0);
    out.u16(HEADER_LEN as u16 + 56).u16(name.len() as u16);
    out.u32(0).u32(0).bytes(&name);
    client.ask(Command::Create, &out.done()).expect("a reply")
}

fn write(client: &mut Client, id: &[u8], data: &[u8]) -> Status {
    let mut out = Out::new();
    out.u16(49).u16(HEADER_LEN as u16 + 48);
    out.u32(data.len() as u32).u64(0).bytes(id).zeros(16);
    out.bytes(data);
    let heard = client.ask(Command::Write, &out.done()).expect("a reply");
    heard.status()
}

/// Returns a BIND, or an ALTER with the most contexts, which has an answer of 6 KiB.
fn binding(kind: u8, contexts: u8) -> Vec<u8> {
    let mut body = Out::new();
    body.u16(4280).u16(4280).u32(0).u8(contexts).zeros(3);
    for context in 0..contexts {
        let transfers = u8::from(kind == 11);
        body.u16(context.into()).u8(transfers).u8(0);
        body.bytes(&UUIDS[..20 + 20 * usize::from(transfers)]);
    }
    let body = body.done();
    let mut out = Out::new();
    out.u8(5).u8(0).u8(kind).u8(3).bytes(&[0x10, 0, 0, 0]);
    out.u16(16 + body.len() as u16).u16(0).u32(1).bytes(&body);
    out.done()
}

#[test]
fn the_pipes_of_a_user_are_bounded_over_all_trees() {
    let mut config = config(Dialect::Smb311);
    config.limits.pipes_per_user = 20;
    let server = Server::new(config).expect("a server");
    let mut client = joined(&server, Dialect::Smb311, Some(1), None);
    let mut opened = 0;
    for _ in 0..4 {
        client.join("IPC$").expect("a tree");
        for _ in 0..10 {
            opened += usize::from(open_pipe(&mut client).status() == Status::SUCCESS);
        }
    }
    assert_eq!(opened, 20);
    // The last tree has no pipes open. Ending the first tree releases its pipes.
    assert_eq!(open_pipe(&mut client).status(), Status::PIPE_NOT_AVAILABLE);
    client.tree -= 2;
    client
        .ask(Command::TreeDisconnect, &[4, 0, 0, 0])
        .expect("a reply");
    client.tree += 2;
    assert_eq!(open_pipe(&mut client).status(), Status::SUCCESS);
}

#[test]
fn a_pipe_keeps_few_answers_that_are_not_read() {
    let server = Server::new(config(Dialect::Smb311)).expect("a server");
    let mut client = joined(&server, Dialect::Smb311, Some(1), None);
    client.join("IPC$").expect("a tree");
    let opened = open_pipe(&mut client);
    let id = opened.message[HEADER_LEN + 64..HEADER_LEN + 80].to_vec();
    assert_eq!(write(&mut client, &id, &binding(11, 1)), Status::SUCCESS);
    let alter = binding(14, 255);
    let taken = (0..256).take_while(|_| write(&mut client, &id, &alter) == Status::SUCCESS);
    assert!((1..=3).contains(&taken.count()));
    let refused = write(&mut client, &id, &alter);
    assert_eq!(refused, Status::INSUFFICIENT_RESOURCES);
}
