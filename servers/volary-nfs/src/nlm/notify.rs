//! Tells clients that had locks that the server has restarted (`SM_NOTIFY` of NSM version 1).
//! Clients that learn it within the grace period reclaim their locks.

use super::Nlm;
use super::granted::{Back, ask_program};
use super::nsm;
use super::state::Client;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;
use volary_rpc::numbers::Program;

/// How many clients are called at the same time.
const CALLERS_MAX: usize = 16;
/// How long to wait before an unreachable client is called again.
const AGAIN: Duration = Duration::from_secs(2);
const SM_NOTIFY: u32 = 6;
const NSM: Program = Program {
    number: nsm::PROGRAM,
    version: nsm::VERSION,
};

type Calls = Mutex<VecDeque<(Client, IpAddr)>>;

impl Nlm {
    /// Begins to tell the clients that had locks at the end of the last run. Unreachable ones are
    /// tried again until the grace period is over.
    pub(crate) fn tell_of_restart(self: &Arc<Self>) {
        let Some(state) = self.state.as_deref().filter(|state| state.is_grace()) else {
            return;
        };
        let calls = VecDeque::from(state.clients());
        let callers = calls.len().min(CALLERS_MAX);
        let calls = Arc::new(Mutex::new(calls));
        for _ in 0..callers {
            let (nlm, calls) = (Arc::clone(self), Arc::clone(&calls));
            self.locks.state.lock().threads += 1;
            let spawned = Builder::new().name("nsm notify".into()).spawn(move || {
                nlm.tell_all(&calls);
                nlm.locks.thread_ended();
            });
            if spawned.is_err() {
                self.locks.thread_ended();
            }
        }
    }

    fn tell_all(&self, calls: &Calls) {
        let Some(state) = self.state.as_deref() else {
            return;
        };
        loop {
            let Some((client, server)) = calls.lock().pop_front() else {
                return;
            };
            let way = Back {
                from: server,
                to: client.peer,
                portmap_port: self.client_portmap,
            };
            let told = ask_program(&way, NSM, SM_NOTIFY, |out| {
                out.opaque(server.to_string().as_bytes());
                out.u32(state.number());
            });
            if told.is_none() {
                calls.lock().push_back((client, server));
                let mut locks = self.locks.state.lock();
                if !locks.shut {
                    self.locks.ended.wait_for(&mut locks, AGAIN);
                }
            }
            if self.locks.state.lock().shut || !state.is_grace() {
                return;
            }
        }
    }
}
