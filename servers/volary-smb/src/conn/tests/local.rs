//! Password guessing from this host.

use super::client::Client;
use super::*;
use crate::clock::now;
use crate::wire::Status;

/// Each guess comes from another address of this host, which made no guess before.
#[test]
fn guesses_from_many_addresses_of_this_host_cost_as_those_from_one() {
    let mut config = config(Dialect::Smb311);
    config.limits.failed_logon_delay = Duration::from_millis(1600);
    let server = Server::new(config).expect("a server");
    let begun = now();
    for last in 1..=4 {
        let (socket, client) = sockets();
        let peer = Ipv4Addr::new(127, 3, last, 2).into();
        let conn = Conn::new(server.register(), socket, peer).expect("a connection");
        let mut client = Client::new(Arc::new(conn), client, Dialect::Smb311, None, None);
        assert_eq!(client.log_on("user", "Pass"), Err(Status::LOGON_FAILURE));
    }
    // Delays of 100 ms after the first guess, 200 ms after the second and 400 ms after the third.
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(650), "{took:?}");
}
